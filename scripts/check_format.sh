#!/usr/bin/env bash
# Prints the name of every source file that clang-format 14 (Debian 12) would change; fails when there
# is one. Status 77 (skipped) without that version: others format differently. With --fix: changes them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
formatter=""
for candidate in clang-format-14 clang-format; do
  if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then formatter="$candidate"; break; fi
done
if [ -z "$formatter" ]; then
  echo "skipped: clang-format 14 is not installed"
  exit 77
fi
mapfile -d '' files < <(find tileweave cli tests examples bench -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) -print0 | sort -z)
if [ "${1:-}" = --fix ]; then
  "$formatter" -i "${files[@]}"
  exit 0
fi
differ=0
for file in "${files[@]}"; do
  if ! "$formatter" "$file" | cmp -s - "$file"; then
    echo "not formatted: $file"
    differ=1
  fi
done
[ "$differ" -eq 0 ] || { echo "run 'make format'"; exit 1; }
echo "${#files[@]} files are formatted"
