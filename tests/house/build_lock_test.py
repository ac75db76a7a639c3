#!/usr/bin/env python3
"""build() of scripts/environment.sh: two builds of a preset wait for each other, its outcome is
theirs. cmake is a stand-in that says when it begins and ends."""
import os
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../scripts')
CMAKE = '''#!/bin/sh
echo "begin $$" >> "$LOG"
sleep 0.3
echo "end $$" >> "$LOG"
exit "${STATUS:-0}"
'''


class BuildLock(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(SCRIPTS, os.path.join(self.root, 'scripts'))
        tools = os.path.join(self.root, 'tools')
        os.mkdir(tools)
        path = os.path.join(tools, 'cmake')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(CMAKE)
        os.chmod(path, 0o755)
        self.log = os.path.join(self.root, 'log')
        self.environment = dict(os.environ, LOG=self.log, PATH=tools + ':' + os.environ['PATH'])

    def start(self, preset, **more):
        return subprocess.Popen(['bash', '-c', f'source scripts/environment.sh; build {preset}'],
                                cwd=self.root, env={**self.environment, **more}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def lines(self):
        with open(self.log, encoding='utf-8') as file:
            return [line.split() for line in file]

    def test_two_builds_of_a_preset_do_not_overlap(self):
        builds = [self.start('cpu'), self.start('cpu')]
        said = [build.communicate(timeout=60)[0] for build in builds]
        self.assertEqual([build.returncode for build in builds], [0, 0], said)
        lines = self.lines()
        self.assertEqual(len(lines), 8)  # each configures and builds
        for begin, end in zip(lines[::2], lines[1::2]):
            self.assertEqual([begin[0], end[0]], ['begin', 'end'])
            self.assertEqual(begin[1], end[1])
        self.assertEqual(sum('waiting for it' in text for text in said), 1, said)

    def test_a_build_that_fails_says_so_and_leaves_the_next_one_free(self):
        failing = self.start('cpu', STATUS='3')
        failing.communicate(timeout=60)
        self.assertEqual(failing.returncode, 3)
        self.assertEqual(len(self.lines()), 2)  # no build after a failed configuration
        after = self.start('cpu')
        said = after.communicate(timeout=60)[0]
        self.assertEqual(after.returncode, 0, said)
        self.assertNotIn('waiting', said)


if __name__ == '__main__':
    unittest.main()
