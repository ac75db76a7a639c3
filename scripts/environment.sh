# Sourced by the other scripts: where we are, how many jobs, which preset, and how to say things.
# Sets ROOT, JOBS, NVCC_REASON (empty when nvcc is new enough), PRESET and PRESET_OPTIONS.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
JOBS="$(nproc)"
MINIMUM_NVCC=13.0

say() { printf '==> %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Prints why CUDA cannot be built, or nothing when it can. Looks where cmake/TileweaveCuda.cmake does.
nvcc_reason() {
  local nvcc version candidate
  for candidate in "${CUDACXX:-}" "${CUDA_PATH:+$CUDA_PATH/bin/nvcc}" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" \
                   "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then nvcc="$candidate"; break; fi
  done
  if [ -z "${nvcc:-}" ]; then
    echo "no nvcc was found, $MINIMUM_NVCC or later is needed"
    return
  fi
  version="$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
  if [ "$(printf '%s\n' "$MINIMUM_NVCC" "${version:-0}" | sort -V | head -n 1)" != "$MINIMUM_NVCC" ]; then
    echo "nvcc is release '${version}', $MINIMUM_NVCC or later is needed"
  fi
}

NVCC_REASON="$(nvcc_reason)"
if [ -z "$NVCC_REASON" ]; then
  PRESET=cuda-release
  PRESET_OPTIONS=()
else
  PRESET=cpu
  PRESET_OPTIONS=(-DTILEWEAVE_CUDA=AUTO)  # AUTO, so that the build names the reason for the skip
fi

# One line for the reader of the log when CUDA is left out.
say_what_is_built() {
  if [ -z "$NVCC_REASON" ]; then
    say "building the CPU and the CUDA device (preset $PRESET, $JOBS jobs)"
  else
    say "skipped: CUDA device ($NVCC_REASON)"
    say "building the CPU device alone (preset $PRESET, $JOBS jobs)"
  fi
}

# build PRESET [CMAKE_OPTION...] [-- TARGET...]: configures and builds a preset. Two at once would
# spoil each other's files, so the second waits.
build() {
  local preset="$1"; shift
  local options=() targets=()
  while [ $# -gt 0 ] && [ "$1" != "--" ]; do options+=("$1"); shift; done
  if [ $# -gt 0 ]; then shift; targets=(--target "$@"); fi
  mkdir -p build
  (
    if ! flock --nonblock 9; then
      say "another build of preset $preset is going on here: waiting for it"
      flock 9
    fi
    # What they start does not hold the lock.
    cmake --preset "$preset" "${options[@]}" 9>&- &&
      cmake --build --preset "$preset" -j "$JOBS" "${targets[@]}" 9>&-
  ) 9>"build/$preset.lock"
}

# The command is left at bin/tileweave, whichever preset built it.
publish_command() {
  [ -x "build/$PRESET/bin/tileweave" ] || fail "the build left no build/$PRESET/bin/tileweave"
  mkdir -p bin
  cp -f "build/$PRESET/bin/tileweave" bin/tileweave
}
