#!/usr/bin/env bash
# A planted fault must be found, fail the run, and leave its input. usage: can_fail.sh PROGRAM FINDINGS
set -euo pipefail
program="$1" findings="$2"
seeds="$(mktemp -d)"
trap 'rm -rf "$seeds"' EXIT
printf 'seed' >"$seeds/seed"
if "$(dirname "${BASH_SOURCE[0]}")/fuzz_for_a_while.sh" "$program" "$seeds" "$findings" 60 60 \
     >/dev/null 2>&1; then
  echo "the planted fault was not found"
  exit 1
fi
[ -n "$(find "$findings" -name 'crash-*')" ] || { echo "the input was not kept"; exit 1; }
