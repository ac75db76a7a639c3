#!/usr/bin/env python3
"""Installs a build into an empty prefix, then configures, builds and runs tests/house/outside with it.

usage: install_test.py BUILD_FOLDER CMAKE CXX
"""
import os
import subprocess
import sys
import tempfile

EXPECTED = '(1, 0) is met by 6 kernel tiles\n'


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f'{" ".join(command)}\nended with {result.returncode}:\n{result.stdout}')
    return result.stdout


def main():
    build, cmake, cxx = sys.argv[1:]
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'outside')
    with tempfile.TemporaryDirectory() as scratch:
        prefix, outside = os.path.join(scratch, 'prefix'), os.path.join(scratch, 'build')
        run(cmake, '--install', build, '--prefix', prefix)
        run(cmake, '-S', source, '-B', outside, f'-DCMAKE_PREFIX_PATH={prefix}',
            f'-DCMAKE_CXX_COMPILER={cxx}', '-DCMAKE_BUILD_TYPE=Release')
        run(cmake, '--build', outside)
        said = run(os.path.join(outside, 'outside'))
    if said != EXPECTED:
        sys.exit(f'the outside program said {said!r}, expected {EXPECTED!r}')
    print('find_package(tileweave) works from outside')


if __name__ == '__main__':
    main()
