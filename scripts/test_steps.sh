# Sourced by test.sh and test_long.sh after environment.sh: steps that are timed, may fail without
# ending the script, and are summed up by finish.

failed_steps=()
junit_files=()

# step NAME COMMAND...: runs a command; remembers a failure under its name.
step() {
  local name="$1" begin=$SECONDS; shift
  say "$name"
  if "$@"; then
    say "$name took $((SECONDS - begin)) s"
  else
    say "$name FAILED after $((SECONDS - begin)) s"
    failed_steps+=("$name")
    return 1
  fi
}

# run_tests PRESET NAME CTEST_OPTION...: runs the tests of a built preset.
run_tests() {
  local preset="$1" junit="$ROOT/build/$1/$2.xml" begin=$SECONDS before=(); shift 2
  rm -f "$junit"
  # ThreadSanitizer of g++ 12 cannot map its shadow where the kernel randomises addresses widely.
  if [ "$preset" = cpu-tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
    before=(setarch "$(uname -m)" -R)
  fi
  say "tests of preset $preset"
  "${before[@]}" ctest --test-dir "build/$preset" -j "$JOBS" --output-on-failure \
      --no-tests=error --output-junit "$junit" "$@" || true  # finish reads the outcome from the file
  junit_files+=("$junit")
  say "tests of preset $preset took $((SECONDS - begin)) s"
}

# finish: the closing line and the exit status of the script.
finish() {
  local arguments=() name
  for name in "${failed_steps[@]}"; do arguments+=(--failed-step "$name"); done
  say "all steps took $SECONDS s"
  python3 scripts/summarize.py "${arguments[@]}" "${junit_files[@]}"
}
