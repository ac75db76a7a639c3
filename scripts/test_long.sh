#!/usr/bin/env bash
# `make test-long`: long properties, the page test and 10 minutes of each fuzz program on the release
# build, everything under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer,
# clang-tidy. The log goes, dated, to docs/results/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "${1:-}" != --inside ]; then  # once more, with everything said going to the log as well
  mkdir -p build docs/results
  log="docs/results/test-long-$(date -u +%Y-%m-%d).log"
  status=0
  "$0" --inside 2>&1 | tee build/test-long.log || status=$?
  sed -e "s#$PWD#.#g" -e '/^\[[0-9]*\/[0-9]*\] /d' build/test-long.log > "$log"
  echo "log: $log"
  exit "$status"
fi

scripts/setup.sh test-long
source scripts/environment.sh
source scripts/test_steps.sh
export TILEWEAVE_LONG=1  # properties that scale their number of cases read this

say "commit $(git describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%Y-%m-%dT%H:%MZ)"
say "$(g++ --version | head -n 1), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $JOBS jobs"

if step "release build" build cpu -DTILEWEAVE_WERROR=ON; then
  run_tests cpu long --label-regex '^(long|fuzz)$'
fi
step "clang-tidy" scripts/tidy.sh build/cpu || true
if step "AddressSanitizer build" build cpu-asan -DTILEWEAVE_WERROR=ON; then
  run_tests cpu-asan asan
fi
if step "ThreadSanitizer build" build cpu-tsan -DTILEWEAVE_WERROR=ON; then
  run_tests cpu-tsan tsan
fi

finish
