#!/usr/bin/env python3
"""Counts the lines marked `// +` in a kernel of examples/02: at most six, and each of them calls or
names something of the library's kernel side, so that no marked line is an alibi.

usage: added_lines_test.py FILE...
"""
import re
import sys

MOST = 6
KERNEL_SIDE = re.compile(r'SyncContext|SyncCta|begin_cta|remap|wait_input|signal_output')


def main():
    failures = []
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8') as file:
            lines = file.read().splitlines()
        marked = [l for l in lines if l.endswith('// +')]
        silent = [l for l in lines if KERNEL_SIDE.search(l) and not l.endswith('// +')
                  and 'reinterpret_cast' not in l]  # the registration is no part of the kernel
        print(f'{path}: {len(marked)} added lines')
        if not 1 <= len(marked) <= MOST:
            failures.append(f'{path}: {len(marked)} lines are marked, at most {MOST} are allowed')
        failures += [f'{path}: marked, but not of the kernel side: {l.strip()}'
                     for l in marked if not KERNEL_SIDE.search(l)]
        failures += [f'{path}: added, but not marked: {l.strip()}' for l in silent]
    print('\n'.join(failures))
    return 1 if failures or len(sys.argv) < 2 else 0


if __name__ == '__main__':
    sys.exit(main())
