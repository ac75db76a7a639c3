#!/usr/bin/env python3
"""Runs one example on one device and compares what it prints with its expected.txt, line by line.

In the expected file, * stands for any text within a line. expected_<device>.txt wins over
expected.txt. Status 77 (skipped) when the device is cuda and there is no GPU.
"""
import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile


# AddressSanitizer says so, twice where two threads get there together; no example wrote it.
SANITIZER_WORD = "WARNING: ASan doesn't fully support makecontext/swapcontext functions"


def matches(line, pattern):
    pattern = pattern.replace('[', '[[]').replace('?', '[?]')  # only * is special
    return fnmatch.fnmatchcase(line, pattern)


def first_difference(said, expected):
    """A sentence about the first line that differs, or None."""
    for number in range(max(len(said), len(expected))):
        line = said[number] if number < len(said) else None
        pattern = expected[number] if number < len(expected) else None
        if line is None or pattern is None or not matches(line, pattern):
            return f'line {number + 1} is {line!r}, expected {pattern!r}'
    return None


def main():
    parser = argparse.ArgumentParser()
    for option in ('device', 'folder', 'program'):
        parser.add_argument('--' + option, required=True)
    parser.add_argument('--gpu-probe')
    options = parser.parse_args()

    if options.gpu_probe:
        probe = subprocess.run([options.gpu_probe], check=False)
        if probe.returncode != 0:
            return probe.returncode
    names = (f'expected_{options.device}.txt', 'expected.txt')
    paths = [os.path.join(options.folder, name) for name in names]
    path = next((p for p in paths if os.path.isfile(p)), None)
    if path is None:
        sys.exit(f'{options.folder} has no expected.txt: the output of an example is tested')
    with open(path, encoding='utf-8') as file:
        expected = file.read().splitlines()
    with tempfile.TemporaryDirectory() as scratch:
        result = subprocess.run([options.program, '--device', options.device], cwd=scratch,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False)
    print(result.stdout, end='')
    if result.returncode != 0:
        sys.exit(f'the example ended with status {result.returncode}')
    said = [line for line in result.stdout.splitlines() if SANITIZER_WORD not in line]
    difference = first_difference(said, expected)
    if difference:
        sys.exit(f'{path}: {difference}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
