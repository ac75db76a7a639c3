#!/usr/bin/env bash
# Installs, through apt and only where missing, what a build needs. usage: setup.sh run|test|test-long
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
purpose="${1:-run}"

packages=()
need_command() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need_header() {
  echo "#include <$1>" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || packages+=("$2")
}

need_libfuzzer() {  # the part of clang that cmake/TileweaveFuzz.cmake wants
  local compiler
  for compiler in clang++ clang++-14; do
    echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
      "$compiler" -fsanitize=fuzzer,address -x c++ - -o /dev/null >/dev/null 2>&1 && return
  done
  packages+=(clang-14 libclang-rt-14-dev)
}

need_command cmake cmake
need_command ninja ninja-build
need_command ccache ccache
need_command python3 python3
python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)  # to convert the model
need_header vector g++  # also when there is no g++ at all
need_header hwy/highway.h libhwy-dev
need_header fmt/format.h libfmt-dev
need_header CLI/CLI.hpp libcli11-dev
need_header nlohmann/json.hpp nlohmann-json3-dev
need_header oniguruma.h libonig-dev
need_header utf8proc.h libutf8proc-dev
need_header gtest/gtest.h libgtest-dev
if [ "$purpose" != run ]; then
  need_command clang-format clang-format
  need_libfuzzer
fi
if [ "$purpose" = test-long ]; then
  need_command clang-tidy clang-tidy
  need_command chromium chromium
fi

if [ ${#packages[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 ||
      fail "missing Debian packages and neither root nor sudo to install them: ${packages[*]}"
    as_root=(sudo)
  fi
  command -v apt-get >/dev/null 2>&1 ||
    fail "missing packages and no apt-get to install them (Debian names): ${packages[*]}"
  say "installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

cmake_version="$(cmake --version | sed -n '1s/.*version //p')"
if [ "$(printf '%s\n' 3.25 "$cmake_version" | sort -V | head -n 1)" != 3.25 ]; then
  fail "cmake is $cmake_version, 3.25 or later is needed"
fi
