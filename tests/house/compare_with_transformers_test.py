#!/usr/bin/env python3
"""scripts/compare_with_transformers.py finds our logits right, and says so when they are not.

usage: compare_with_transformers_test.py COMMAND     (skipped, by name, without torch or transformers)
"""
import contextlib
import importlib.util
import io
import json
import os
import stat
import sys
import tempfile
import unittest

for module in ('torch', 'transformers'):
    if importlib.util.find_spec(module) is None:
        print(f'skipped: comparing with transformers (no {module} for {sys.executable})')
        sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../scripts'))
import compare_with_transformers

COMMAND = os.path.abspath(sys.argv.pop(1))
ARMS = ('prompt:ops', 'decode:stages')


class Comparison(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def run_script(self, command, *more):
        """Exit status or message, the table, and the JSON where there is one."""
        report = os.path.join(self.scratch, 'report.json')
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                status = compare_with_transformers.main(
                    ['--device', 'cpu', '--tiny', '--positions', '96', '--length', '32',
                     '--side-by-side', '2', '--command', command, '--json', report, *more])
            except SystemExit as end:
                status = end.code
        if not os.path.exists(report):
            return status, said.getvalue(), None
        with open(report, encoding='utf-8') as file:
            return status, said.getvalue(), json.load(file)

    def wrapper(self, text):
        path = os.path.join(self.scratch, 'wrapper')
        with open(path, 'w', encoding='utf-8') as file:
            file.write('#!/usr/bin/env python3\nimport os, sys\nwords = sys.argv[1:]\n' + text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def test_finds_our_logits_nearer_than_bf16(self):
        for model in ('llama-3.2-1b', 'qwen3-8b'):
            with self.subTest(model):
                status, said, report = self.run_script(COMMAND, '--model', model)
                self.assertEqual(status, 0, said)
                programs = report['programs']
                self.assertGreater(programs['transformers bf16']['mean_kl'], 1e-6)
                for arm in ARMS:
                    self.assertEqual(programs[arm]['positions'], 96)
                    # f32 on the CPU, as the reference
                    self.assertLess(programs[arm]['mean_kl'], 1e-8)
                    self.assertEqual(programs[arm]['top1_agreement_percent'], 100)

    def test_names_both_bars_where_logits_are_of_other_tokens(self):
        wrapper = self.wrapper(f'''
at = words.index('--ids-file') + 1
with open(words[at]) as file:
    lines = file.readlines()
words[at] += '.other'
with open(words[at], 'w') as file:
    file.writelines(reversed(lines))
os.execv({COMMAND!r}, [{COMMAND!r}, *words])
''')
        status, said, report = self.run_script(wrapper)
        self.assertEqual(status, 1)
        for arm in ARMS:
            self.assertIn(f'missed: {arm}: mean KL', said)
            self.assertIn(f'missed: {arm}: top-1', said)
        self.assertEqual(len(report['misses']), 4)

    def test_says_what_the_command_said_when_it_fails(self):
        wrapper = self.wrapper('sys.exit("tileweave: out of luck")')
        status, _, report = self.run_script(wrapper)
        self.assertIn('out of luck', status)
        self.assertIsNone(report)

    def test_fewer_rows_are_an_error(self):
        wrapper = self.wrapper(f'''
at = words.index('--ids-file') + 1
with open(words[at]) as file:
    lines = file.readlines()
with open(words[at] + '.less', 'w') as file:
    file.writelines(lines[:-1])
words[at] += '.less'
os.execv({COMMAND!r}, [{COMMAND!r}, *words])
''')
        status, _, _ = self.run_script(wrapper)
        self.assertIn('F32 [96, 512] were expected, not F32 [64, 512]', status)


if __name__ == '__main__':
    unittest.main()
