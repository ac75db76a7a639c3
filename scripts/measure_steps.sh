# Sourced by measure_decode.sh and measure_baselines.sh: steps with a time limit each, of a build
# and a folder for results, until the time of the script is used up.

# begin NAME SECONDS [BUILD_DIR OUT_DIR]: how long the script may take; sets build and out.
begin() {
  [ $# -eq 4 ] || { echo "usage: $1 BUILD_DIR OUT_DIR" >&2; exit 2; }
  limit="$2"
  build="$(cd "$3" && pwd)" || exit 2
  mkdir -p "$4" && out="$(cd "$4" && pwd)" || exit 2
  [ -x "$build/bin/tileweave" ] || { echo "error: no command at $build/bin/tileweave" >&2; exit 2; }
  missing=()
}

# measure NAME SECONDS COMMAND...: at most so many seconds; output to NAME.log, its end to the screen.
measure() {
  local name="$1" most="$2" left=$((limit - SECONDS)) start=$SECONDS status
  shift 2
  [ "$left" -lt "$most" ] && most="$left"
  if [ "$most" -lt 5 ]; then
    echo "== $name: left out, the $limit s of this script are used up"
    missing+=("$name")
    return
  fi
  timeout --kill-after=5 "$most" "$@" >"$out/$name.log" 2>&1
  status=$?
  echo "== $name: $((SECONDS - start)) s, exit status $status"
  tail -n "${TAIL:-3}" "$out/$name.log"
  [ "$status" -eq 0 ] || missing+=("$name")
}

# finish KIND: one JSON and the table; fails where something was not measured.
finish() {
  python3 "$(dirname "${BASH_SOURCE[0]}")/measurements.py" "$1" "$out" --json "$out/$1.json" || exit 1
  echo "all steps took $SECONDS s; $out/$1.json"
  [ ${#missing[@]} -eq 0 ] && return
  echo "not measured: ${missing[*]}"
  exit 1
}
