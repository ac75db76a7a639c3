#!/usr/bin/env bash
# Measures decoding on a GPU in less than nine minutes: steps of four models over batches and
# contexts, granularity `ops` beside `stages`, growing contexts, single kernels, prefill (by our wide
# products and the vendor's), and the same step from cuBLASLt and our small kernels. Leaves one JSON
# and prints the table with its bars.
# usage: measure_decode.sh BUILD_DIR OUT_DIR
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/measure_steps.sh"
begin measure_decode.sh 530 "$@"
tileweave="$build/bin/tileweave"

decode() {  # NAME SECONDS OPTION...
  local name="$1" most="$2"
  shift 2
  measure "$name" "$most" "$tileweave" bench decode --device cuda --json-file "$out/$name.json" "$@"
}

for model in llama-3.2-1b qwen3-0.6b qwen3-1.7b qwen3-8b; do
  decode "decode_$model" 100 --model "$model" --granularity stages --batch 1,2,4,8,16 \
    --context 128,1024 --steps 32 --repeat 7 --without-attention
done
for model in llama-3.2-1b qwen3-0.6b; do
  decode "ops_$model" 40 --model "$model" --granularity ops --batch 1 --context 128 --steps 32 \
    --repeat 7 --tile
done
measure gemm 60 "$tileweave" bench gemm --rows 1,16 --repeat 7 --json-file "$out/gemm.json"
measure attention 60 "$tileweave" bench attention --repeat 7 --json-file "$out/attention.json"
measure library 110 "$build/bench/library_graph_bench" --model llama-3.2-1b,qwen3-0.6b,qwen3-8b \
  --batch 1,8 --check off --json "$out/library.json"
measure wide_gemm 60 "$build/bench/wide_gemm_bench" --rows 512,2048 --repeat 5 --json "$out/wide_gemm.json"
for model in llama-3.2-1b qwen3-8b; do
  for wide in own vendor; do
    measure "prefill_${model}_$wide" 40 "$tileweave" bench prefill --device cuda --model "$model" \
      --tokens 512,2048 --wide-products "$wide" --json-file "$out/prefill_${model}_$wide.json"
  done
  decode "grow_$model" 70 --model "$model" --granularity stages --batch 1 \
    --grow 128+64,1024+1024 --repeat 2
done
finish decode
