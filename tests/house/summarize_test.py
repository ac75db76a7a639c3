#!/usr/bin/env python3
"""The closing line of `make test` counts rightly, and the exit status can be a failure."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../scripts/summarize.py')
PASSED = '<testcase name="p" status="run"/>'
FAILED = '<testcase name="f" status="fail"><failure message=""/></testcase>'
SKIPPED = ('<testcase name="s" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
           '<system-out>skipped: no GPU</system-out></testcase>')
NOT_BUILT = ('<testcase name="n" status="notrun"><skipped message="Unable to find executable"/>'
             '</testcase>')


class Summarize(unittest.TestCase):
    def says(self, runs, *options):
        with tempfile.TemporaryDirectory() as scratch:
            paths = []
            for number, cases in enumerate(runs):
                paths.append(os.path.join(scratch, f'{number}.xml'))
                with open(paths[-1], 'w', encoding='utf-8') as file:
                    file.write('<testsuite>' + ''.join(cases) + '</testsuite>')
            result = subprocess.run([sys.executable, SCRIPT, *options, *paths], text=True,
                                    stdout=subprocess.PIPE, check=False)
        return result.returncode, result.stdout.splitlines()

    def test_sums_several_runs(self):
        status, lines = self.says([[PASSED, SKIPPED], [PASSED]])
        self.assertEqual((status, lines[-1]), (0, '2 passed, 0 failed, 1 skipped'))
        self.assertIn('skipped: s (no GPU)', lines)

    def test_fails_when_a_case_failed(self):
        status, lines = self.says([[PASSED, FAILED]])
        self.assertEqual((status, lines[-1]), (1, '1 passed, 1 failed, 0 skipped'))
        self.assertIn('failed: f', lines)

    def test_counts_a_test_that_was_not_built_as_failed(self):
        status, lines = self.says([[PASSED, NOT_BUILT]])
        self.assertEqual((status, lines[-1]), (1, '1 passed, 1 failed, 0 skipped'))

    def test_counts_a_broken_build_as_failed(self):
        status, lines = self.says([[PASSED]], '--failed-step', 'build')
        self.assertEqual((status, lines[-1]), (1, '1 passed, 1 failed, 0 skipped'))
        self.assertIn('failed: build', lines)

    def test_fails_when_nothing_passed(self):
        self.assertEqual(self.says([[SKIPPED]])[0], 1)
        self.assertEqual(self.says([])[0], 1)

    def test_fails_when_a_file_is_missing(self):
        result = subprocess.run([sys.executable, SCRIPT, 'no-such-file.xml'], check=False,
                                stdout=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn('0 passed, 1 failed, 0 skipped', result.stdout)


if __name__ == '__main__':
    unittest.main()
