#!/usr/bin/env bash
# Runs a program that writes HTML timelines into an empty folder and opens each in headless Chromium.
# usage: open_pages.sh FOLDER PROGRAM [ARGUMENT...]   the program runs in FOLDER; screenshots stay there
# Status 77 (skipped) when there is no Chromium.
set -euo pipefail
folder="$1"; shift
opener="$(cd "$(dirname "${BASH_SOURCE[0]}")/../trace" && pwd)/open_timeline.py"
if ! command -v chromium >/dev/null 2>&1; then
  echo "skipped: chromium is not installed"
  exit 77
fi
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
"$@"
python3 "$opener" --screenshots . ./*.html
