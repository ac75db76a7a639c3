#!/usr/bin/env python3
"""Checks the rules of the house that a compiler cannot see: who may include whom, and where.

usage: layer_check.py ROOT     prints one line per violation; exit status 1 when there is any

The rules are those of CONTRIBUTING.md. layer_check_test.py proves that each of them can fail.
"""
import os
import re
import sys

# In reading order; a folder may include only folders with a smaller number, and itself.
LAYERS = ['core', 'trace', 'tile', 'sync', 'plan', 'runtime', 'runtime/comm',
          ('runtime/cpu', 'runtime/cuda'), 'kernels/*', 'tune', 'moe', 'models', 'cli']
TOPS = ('tileweave', 'cli', 'tests', 'examples', 'bench', 'python')
SOURCES = ('.h', '.cpp', '.cuh', '.cu', '.py', '.sh', '.cmake')
SKIPPED_FOLDERS = {'.git', 'build', 'bin', 'out', '.carry', '.cache', '__pycache__'}
VAGUE_NAMES = {'util', 'utils', 'common', 'misc', 'helper', 'helpers'}
MAX_LINES = 800
THE_ONLY_IF = 'tileweave/core/target.h'

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITIONAL = re.compile(r'^\s*#\s*(if|ifdef|ifndef|elif)\b')
ASSEMBLY = re.compile(r'\basm\b\s*(volatile|__volatile__)?\s*\(')
CUDA_HEADER = re.compile(
    r'^(cuda|cooperative_groups|cub/|thrust/|nv/|mma\.h|cublas|cudnn|nccl|nvrtc|nvtx3/|cupti|'
    r'device_launch_parameters|vector_types|sm_\d)|\.cuh$')


def ranks():
    table = {}
    for number, names in enumerate(LAYERS):
        for name in names if isinstance(names, tuple) else (names,):
            table[name] = number
    return table


RANKS = ranks()


def layer_of(path):
    """The layer a file of tileweave/ or cli/ belongs to, or None when its folder is not known."""
    parts = path.split('/')[:-1]
    if parts and parts[0] == 'cli':
        return 'cli'
    parts = parts[1:]
    if len(parts) >= 2 and parts[0] == 'kernels':
        return 'kernels/' + parts[1]
    name = '/'.join(parts)
    if name in RANKS:
        return name
    return parts[0] if parts and parts[0] in ('tune', 'moe', 'models') else None


def rank(layer):
    return RANKS['kernels/*'] if layer.startswith('kernels/') else RANKS[layer]


def files_below(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
        for name in sorted(folders + names):
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, '/')
            yield path, name in folders


def check_include(root, path, target, quoted):
    """Violations of one #include line, as sentences without the place."""
    if path.endswith(('.h', '.cpp')) and CUDA_HEADER.search(target):
        yield f'includes {target}; only .cuh and .cu may see CUDA'
    top = target.split('/')[0]
    if top not in TOPS:
        if quoted and not target.startswith('hwy/'):
            yield f'includes "{target}"; write includes from the root of the repository'
        return
    if not os.path.isfile(os.path.join(root, target)):
        yield f'includes {target}, which does not exist'
    library = path.split('/')[0] in ('tileweave', 'cli')
    if not library:
        return
    if top not in ('tileweave', 'cli'):
        yield f'includes {target}; the library may not include {top}/'
        return
    own, other = layer_of(path), layer_of(target)
    if other is None:
        yield f'includes {target}, whose folder is no layer'
    elif own is not None and own != other and rank(other) >= rank(own):
        yield f'includes {target}; {own} may include only folders above it, and {other} is not'


def check_source(root, path):
    with open(os.path.join(root, path), encoding='utf-8', errors='replace') as file:
        lines = file.read().split('\n')
    if len(lines) > MAX_LINES + 1:
        yield f'{path}: has {len(lines) - 1} lines; more than {MAX_LINES} hold more than one idea'
    if not path.endswith(('.h', '.cpp', '.cuh', '.cu')):
        return
    in_library = path.startswith('tileweave/')
    if path.startswith(('tileweave/', 'cli/')) and layer_of(path) is None:
        yield f'{path}: lies in a folder that is no layer; layer_check.py lists the layers'
    if path.endswith(('.h', '.cuh')) and not any(l.strip() == '#pragma once' for l in lines) \
            and not path.endswith('-inl.h'):
        yield f'{path}: has no #pragma once'
    for number, line in enumerate(lines, 1):
        place = f'{path}:{number}'
        include = INCLUDE.match(line)
        if include:
            for violation in check_include(root, path, include[2], include[1] == '"'):
                yield f'{place}: {violation}'
        if in_library and path != THE_ONLY_IF and CONDITIONAL.match(line):
            yield f'{place}: has #{CONDITIONAL.match(line)[1]}; the only one is in {THE_ONLY_IF}'
        if in_library and ASSEMBLY.search(line.split('//')[0]) and not (
                path.endswith('.cuh') and path.startswith(('tileweave/sync/', 'tileweave/kernels/'))):
            yield f'{place}: has assembly; PTX lives in one .cuh per topic under sync/ and kernels/'


def check(root):
    """All violations below root, in the order of the paths."""
    for path, is_folder in files_below(root):
        stem = os.path.basename(path).split('.')[0].lower()
        if stem in VAGUE_NAMES:
            yield f'{path}: a file or folder named {stem} says nothing; name the idea'
        if not is_folder and path.endswith(SOURCES):
            yield from check_source(root, path)


def main():
    if len(sys.argv) != 2 or not os.path.isfile(os.path.join(sys.argv[1], THE_ONLY_IF)):
        sys.exit(f'usage: layer_check.py ROOT, where ROOT holds {THE_ONLY_IF}')
    violations = list(check(sys.argv[1]))
    print('\n'.join(violations) if violations else 'the layers hold')
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main())
