#!/usr/bin/env bash
# `make run`: installs what is missing, builds, lets a language model answer a chat prompt through
# overlapped kernels and names the timeline it wrote. Needs no terminal, and no network once the model
# is in the cache. make run MODEL=DIR takes a Hugging Face directory instead, PROMPT=TEXT another prompt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh run
source scripts/environment.sh

say_what_is_built
build "$PRESET" "${PRESET_OPTIONS[@]}" -- tileweave_command
publish_command

model="${MODEL:-$(python3 scripts/fetch_smollm2.py)}"
prompt="${PROMPT:-Explain in two sentences how weaving works.}"
mkdir -p out
rm -f out/timeline.html out/trace.json
say "model:  $model"
say "prompt: $prompt"
bin/tileweave generate --model "$model" --chat --prompt "$prompt" --max-new-tokens 64 --temperature 0 \
    --mode overlap --timeline out/timeline.html --trace out/trace.json
for file in out/timeline.html out/trace.json; do
  [ -s "$file" ] || fail "tileweave generate left no $file"
done
say "timeline, to open in a browser:         out/timeline.html"
say "trace, to open in https://ui.perfetto.dev: out/trace.json"
