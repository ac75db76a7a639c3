#!/usr/bin/env bash
# `make test`: release build of everything, all tests but the long ones, then the protocol and the
# emulated device under ThreadSanitizer. Ends with one line: N passed, N failed, N skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh test
source scripts/environment.sh
source scripts/test_steps.sh

say_what_is_built
if step "release build" build "$PRESET" "${PRESET_OPTIONS[@]}" -DTILEWEAVE_WERROR=ON; then
  publish_command
  run_tests "$PRESET" release --label-exclude '^long$'
fi

tsan_targets=(tileweave_sync_tests tileweave_runtime_cpu_tests)
if step "ThreadSanitizer build" build cpu-tsan -DTILEWEAVE_WERROR=ON -- "${tsan_targets[@]}"; then
  run_tests cpu-tsan tsan --label-regex '^(sync|runtime_cpu)$'
fi

finish
