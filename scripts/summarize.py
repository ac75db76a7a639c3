#!/usr/bin/env python3
"""Sums ctest runs into one closing line, `N passed, N failed, N skipped`, after the names.

usage: summarize.py [--failed-step NAME]... [JUNIT_FILE...]

The files come from `ctest --output-junit`. A failed step (a build that broke) counts as one failed
test. Exit status 1 when anything failed, when a file cannot be read, or when no test passed.
"""
import argparse
import sys
import xml.etree.ElementTree as ElementTree


def outcomes(path):
    """Yields (outcome, name, reason) of every case of a JUnit file."""
    for case in ElementTree.parse(path).getroot().iter('testcase'):
        status, name = case.get('status'), case.get('name')
        if status == 'run':
            yield 'passed', name, ''
        elif status == 'disabled' or (status == 'notrun' and skipped_itself(case)):
            yield 'skipped', name, reason_for_skip(case)
        else:
            yield 'failed', name, 'it could not be run' if status == 'notrun' else ''


def skipped_itself(case):
    """True when the test ran and said that it skips; a missing executable is a failure."""
    skipped = case.find('skipped')
    return skipped is not None and skipped.get('message', '').startswith('SKIP_')


def reason_for_skip(case):
    said = case.findtext('system-out') or ''
    for line in said.splitlines():
        if line.startswith('skipped: '):
            return line[len('skipped: '):]
    return ''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--failed-step', action='append', default=[])
    parser.add_argument('files', nargs='*')
    options = parser.parse_args()
    found = {'passed': [], 'failed': [(step, '') for step in options.failed_step], 'skipped': []}
    for path in options.files:
        try:
            for outcome, name, reason in outcomes(path):
                found[outcome].append((name, reason))
        except (OSError, ElementTree.ParseError) as error:
            found['failed'].append((f'{path} cannot be read: {error}', ''))
    for outcome in ('skipped', 'failed'):
        for name, reason in found[outcome]:
            print(f'{outcome}: {name}' + (f' ({reason})' if reason else ''))
    print(', '.join(f'{len(found[outcome])} {outcome}' for outcome in found))
    return 0 if found['passed'] and not found['failed'] else 1


if __name__ == '__main__':
    sys.exit(main())
