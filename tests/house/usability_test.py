#!/usr/bin/env python3
"""scripts/usability.py counts and strips rightly, and says so when it cannot."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../scripts/usability.py')
FIXTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'usability_fixture.cpp')
# `base` is what usability_fixture.cpp says of itself, line by line.
with open(FIXTURE, encoding='utf-8') as fixture:
    BASE = sum(line.endswith('// base\n') for line in fixture)
EXPECTED = {'base': BASE, 'in': 1, 'out': 2, 'alloc': 3, 'tune': 1, 'remap': 1, 'other': 3}


def run(*arguments):
    result = subprocess.run([sys.executable, SCRIPT, *arguments], text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return result.returncode, result.stdout, result.stderr


@unittest.skipUnless(shutil.which('clang-format'), 'clang-format is not installed')
class Count(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def file(self, text):
        path = os.path.join(self.folder, 'source.cpp')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def counts(self, path):
        written = os.path.join(self.folder, 'counts.json')
        status, _, err = run('count', '--json', written, path)
        self.assertEqual((status, err), (0, ''))
        with open(written, encoding='utf-8') as file:
            return json.load(file)

    def test_counts_each_line_of_the_fixture_in_its_category(self):
        counts = self.counts(FIXTURE)
        self.assertEqual(counts['total'], EXPECTED)
        self.assertEqual(counts['added'], 11)
        self.assertEqual(counts['ratio'], round(11 / 21, 4))

    def test_prints_the_papers_table_beside(self):
        out = run('count', FIXTURE)[1]
        self.assertRegex(out, r'MegaOps.*lines +847 +490 +611 +171 +244 +111 +140 +1767')
        self.assertRegex(out, r'MegaOps.* 1.00 +0.58 +0.72 +0.20 +0.29 +0.13 +0.17 +2.09')

    def test_fails_above_the_limit_alone(self):
        self.assertEqual(run('count', '--most', '0.53', FIXTURE)[0], 0)
        status, _, err = run('count', '--most', '0.52', FIXTURE)
        self.assertEqual(status, 1)
        self.assertIn('expected at most 0.52 added lines per base line, got 0.524', err)

    def test_counts_a_line_that_only_formatting_adds(self):
        # Without the marked line the call fits on one: two of its three lines were there for overlap.
        path = self.file('int g(int a) {\n'
                         '  return f({.first = a,\n'
                         '            .second = 2,  // + alloc\n'
                         '            .third = 3});\n'
                         '}\n')
        total = self.counts(path)['total']
        self.assertEqual((total['base'], total['alloc'], total['other']), (1, 1, 1))

    def refuses(self, text, sentence):
        status, _, err = run('count', self.file(text))
        self.assertEqual((status, len(err.splitlines())), (1, 1))
        self.assertIn(sentence, err)

    def test_refuses_a_mark_without_a_known_category(self):
        self.refuses('int a;  // +\n', 'source.cpp:1: expected a mark with one of')
        self.refuses('int a;\nint b;  // + sync\n', 'source.cpp:2: expected a mark with one of')

    def test_refuses_blocks_that_do_not_close(self):
        self.refuses('// +{ alloc\nint a;\n', 'expected // +} before the end')
        self.refuses('int a;\n// +}\n', 'expected +{ and +} in turn')
        self.refuses('// +{ in\n// +{ out\nint a;\n// +}\n', 'expected +{ and +} in turn')

    def test_refuses_a_file_that_is_not_formatted(self):
        self.refuses('int  a;\n', 'to be formatted')

    def test_refuses_a_file_without_base_lines(self):
        self.refuses('// nothing\nint f();\n', 'expected base lines')

    def test_names_a_file_that_is_not_there(self):
        status, _, err = run('count', '/nowhere.cpp')
        self.assertEqual(status, 1)
        self.assertIn('cannot read /nowhere.cpp', err)


class Strip(unittest.TestCase):
    def test_leaves_what_compiles_and_holds_no_mark(self):
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, 'below', 'stripped.cpp')
            status, _, err = run('strip', FIXTURE, result)
            self.assertEqual((status, err), (0, ''))
            with open(result, encoding='utf-8') as file:
                text = file.read()
            self.assertNotRegex(text, r'// \+(?! alloc is no mark)')
            self.assertIn('"// + alloc is no mark in a string"', text)
            subprocess.run(['g++', '-std=c++20', '-Wall', '-Wextra', '-Werror', '-fsyntax-only',
                            result], check=True)


if __name__ == '__main__':
    unittest.main()
