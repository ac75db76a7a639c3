#!/usr/bin/env bash
# Prints the name of every source file that clang-format would change; fails when there is one.
# Status 77 (skipped) when there is no clang-format. With --fix: changes them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v clang-format >/dev/null 2>&1; then
  echo "skipped: clang-format is not installed"
  exit 77
fi
mapfile -d '' files < <(find tileweave cli tests examples bench -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) -print0 | sort -z)
if [ "${1:-}" = --fix ]; then
  clang-format -i "${files[@]}"
  exit 0
fi
differ="$(clang-format --dry-run "${files[@]}" 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort -u)"
if [ -n "$differ" ]; then
  printf 'not formatted: %s\n' $differ
  echo "run 'make format'"
  exit 1
fi
echo "${#files[@]} files are formatted"
