#!/usr/bin/env bash
# Runs a libFuzzer program from a folder of seeds, for SHORT seconds, or LONG ones when TILEWEAVE_LONG
# is 1. Fails on a finding and says where its input is kept.
# usage: fuzz_for_a_while.sh PROGRAM SEEDS FINDINGS SHORT LONG [LIBFUZZER_OPTION...]
set -euo pipefail
program="$1" seeds="$2" findings="$3" seconds="$4"
[ "${TILEWEAVE_LONG:-}" = 1 ] && seconds="$5"
shift 5
[ -n "$(ls -A "$seeds")" ] || { echo "error: no seeds in $seeds" >&2; exit 1; }
rm -rf "$findings"
mkdir -p "$findings"
grown="$(mktemp -d)"  # what the fuzzer adds to the seeds
trap 'rm -rf "$grown"' EXIT

# AddressSanitizer of clang 14 cannot map its shadow where the kernel randomises addresses widely.
before=()
if setarch "$(uname -m)" -R true 2>/dev/null; then before=(setarch "$(uname -m)" -R); fi
# Leaks are not looked for: it needs ptrace, which containers may forbid, and nothing here is freed by
# hand.
status=0
ASAN_OPTIONS=detect_leaks=0 "${before[@]}" "$program" "$grown" "$seeds" \
  -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -detect_leaks=0 -error_exitcode=1 \
  -timeout_exitcode=1 -artifact_prefix="$findings/" -print_final_stats=1 -print_funcs=0 "$@" \
  >"$findings/log" 2>&1 || status=$?
grep -E "^(stat::|==|SUMMARY|Done|INFO: Seed)" "$findings/log" || true
if [ "$status" -ne 0 ]; then
  tail -n 40 "$findings/log"
  echo "a finding of $(basename "$program"), exit status $status; its input is kept in $findings"
  exit 1
fi
# A run that did nothing is no success.
runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$findings/log")"
[ "${runs:-0}" -gt 100 ] || { echo "error: only ${runs:-0} inputs were tried"; exit 1; }
