#!/usr/bin/env bash
# Runs everything that needs a GPU from a finished CUDA build and leaves one log a step:
# tests, doctor, hop costs, the chain benchmark, the examples on `cuda`, and serial mode under
# compute-sanitizer. Every step has a time limit, so a hang costs no more than that.
# usage: gpu_results.sh BUILD_DIR OUT_DIR [STEP...]   steps: tests doctor sync chain examples sanitizer
set -uo pipefail
[ $# -ge 2 ] || { echo "usage: gpu_results.sh BUILD_DIR OUT_DIR [STEP...]" >&2; exit 2; }
build="$(cd "$1" && pwd)" || exit 1
mkdir -p "$2" && out="$(cd "$2" && pwd)" || exit 1
shift 2
steps="${*:-tests doctor sync chain examples sanitizer}"
failed=0

# run NAME LIMIT COMMAND...: output to NAME.log and its end to the screen.
run() {
  local name="$1" limit="$2" status begin end
  shift 2
  begin=$(date +%s)
  timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1
  status=$?
  end=$(date +%s)
  echo "== $name: exit $status, $((end - begin)) s"
  tail -n "${TAIL:-6}" "$out/$name.log"
  [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || failed=1
}
has() { case " $steps " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader 2>/dev/null |
  tee "$out/gpu.txt"

if has tests; then
  for test in "$build"/tests/gpu/*_gpu_tests; do
    name="$(basename "$test")"
    run "$name" 170 "$test" --gtest_brief=1
  done
fi
if has doctor; then TAIL=40 run doctor 120 "$build/bin/tileweave" doctor; fi
if has sync; then TAIL=40 run bench_sync 120 "$build/bin/tileweave" bench sync; fi
if has chain; then TAIL=60 run chain 200 "$build/bench/chain_bench" --json "$out/chain.json"; fi
if has examples; then
  for example in "$build"/examples/[0-9]*; do
    for mode in serial overlap; do
      for submit in eager graph; do
        run "$(basename "$example")_${mode}_$submit" 60 \
          "$example" --device cuda --mode "$mode" --submit "$submit"
      done
    done
  done
fi
if has sanitizer; then
  for tool in memcheck racecheck; do
    run "sanitizer_$tool" 120 compute-sanitizer --tool "$tool" --report-api-errors no \
      --error-exitcode 9 \
      "$build/examples/01_two_gemms" --device cuda --mode serial --submit eager
  done
fi
exit "$failed"
