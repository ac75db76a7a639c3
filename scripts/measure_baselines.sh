#!/usr/bin/env bash
# Measures what users have today on a GPU in less than nine minutes: Hugging Face transformers with a
# static cache, and a plain PyTorch decoder, both compiled, for a small and a large model at batch 1
# and 8; our steps and the streaming rate are measured beside them. Needs PyTorch and transformers.
# usage: measure_baselines.sh BUILD_DIR OUT_DIR
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/measure_steps.sh"
begin measure_baselines.sh 530 "$@"
baselines="$(cd "$(dirname "${BASH_SOURCE[0]}")/../bench/baselines" && pwd)"

for model in llama-3.2-1b qwen3-8b; do
  measure "ours_$model" 60 "$build/bin/tileweave" bench decode --device cuda --model "$model" \
    --granularity stages --batch 1,8 --context 128 --steps 32 --repeat 7 \
    --json-file "$out/ours_$model.json"
done
TAIL=6
for model in llama-3.2-1b qwen3-8b; do
  measure "plain_torch_$model" 120 python3 "$baselines/plain_torch.py" --model "$model" --batch 1,8 \
    --budget-s 90 --json "$out/plain_torch_$model.json"
  measure "hf_$model" 140 python3 "$baselines/hf_static_cache.py" --model "$model" --batch 1,8 \
    --budget-s 110 --json "$out/hf_$model.json"
done
finish baselines
