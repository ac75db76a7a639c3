#!/usr/bin/env bash
# clang-tidy over the sources of the library, the command and the examples that a plain C++ compiler
# reads. usage: tidy.sh BUILD_FOLDER (one configured without CUDA)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="$1"
command -v clang-tidy >/dev/null 2>&1 || { echo "error: clang-tidy is not installed" >&2; exit 1; }
[ -f "$build/compile_commands.json" ] || { echo "error: $build is not configured" >&2; exit 1; }
# -Wno-unknown-warning-option: the commands are g++'s.
find tileweave cli examples -name '*.cpp' -print0 | sort -z |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option
