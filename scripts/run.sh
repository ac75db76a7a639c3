#!/usr/bin/env bash
# `make run`: installs what is missing, builds, runs the main example, names the timeline it wrote.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh run
source scripts/environment.sh

say_what_is_built
build "$PRESET" "${PRESET_OPTIONS[@]}" -- tileweave_command example_01_two_gemms
publish_command

mkdir -p out
"build/$PRESET/examples/01_two_gemms" --device cpu --timeline out/timeline.html --trace out/trace.json
for file in out/timeline.html out/trace.json; do
  [ -s "$file" ] || fail "the example left no $file"
done
say "timeline, to open in a browser:         out/timeline.html"
say "trace, to open in https://ui.perfetto.dev: out/trace.json"
