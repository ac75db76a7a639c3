#!/usr/bin/env python3
"""What overlap costs whoever writes a model: counts, in op-sequence sources, the lines marked as there
for overlap only, in the categories of Table 1 of the MegaOps paper, beside its numbers.

usage: usability.py count [--json FILE] [--most RATIO] SOURCE...
       usability.py strip SOURCE RESULT

A marked line ends in `// + CATEGORY`, several lines stand between `// +{ CATEGORY` and `// +}`:
  in, out   what is passed so that inputs are waited for, outputs signalled (`in/out`, one line that
            does both, is counted as in)
  alloc     choosing data tiles and sizing what synchronises them
  tune      choosing by measurement         remap   the order of blocks
  other     whatever else is there for overlap
A line that mixes both kinds is marked. `strip` writes the source without the marked lines, formatted
where clang-format is at hand: it must compile, run and give the same results, which is how one knows
that no unmarked line is needed for overlap alone and no marked one for anything else (the tests of
models do so, with warnings for what is unused turned into errors).

Counted are the lines of the clang-format'ed files, base lines in the stripped file. As in the paper,
blank lines, comments, function signatures and assertions (require, check, assert, throw) do not
count. Neither do, because they would only swell the base, #include, namespace and using-namespace
lines, access specifiers and lines of punctuation alone. What formatting changes in other lines when
the marked ones go counts as other. Exit status 1 when added lines exceed RATIO times the base lines.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

CATEGORIES = ('in', 'out', 'alloc', 'tune', 'remap', 'other')
PAPER = {'base': 847, 'in': 490, 'out': 611, 'alloc': 171, 'tune': 244, 'remap': 111, 'other': 140}
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
MARK = re.compile(r'//\s*\+(.*)$')
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                   r"(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'", re.DOTALL)
ASSERTION = re.compile(r'(if (constexpr )?\(.*\) )?(throw\b|(static_assert|assert|require|check) ?\()')
FRAME = re.compile(r'\s*(#|(inline )?namespace\b|using namespace\b|(public|private|protected):$)')
AFTER_PARAMETERS = re.compile(r'\) ?((const|noexcept|override|final|mutable|&&?)\b ?)*(-> ?[^{};]+)?$')


class Problem(Exception):
    """One sentence for the user."""


def read(path):
    try:
        with open(path, encoding='utf-8') as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise Problem(f'cannot read {path}: {problem}') from problem


def marks(path, text):
    """The category of each line, None where unmarked; `mark` on the lines that open and close."""
    categories, inside = [], None
    for number, line in enumerate(without_literals(text).splitlines(), 1):
        found = MARK.search(line)
        word = found.group(1).strip() if found else None
        alone = found is not None and line[:found.start()].strip() == ''
        opens = word is not None and word.startswith('{')
        closes = word == '}'
        name = (word or '').removeprefix('{').strip()
        name = 'in' if name == 'in/out' else name
        if word is not None and (closes or opens) and (not alone or closes != bool(inside)):
            raise Problem(f'{path}:{number}: expected +{{ and +}} in turn, each on its own line')
        if word is not None and not closes and name not in CATEGORIES:
            raise Problem(f'{path}:{number}: expected a mark with one of {", ".join(CATEGORIES)}, '
                          f'got "{line.strip()}"')
        if opens or closes:
            inside = name if opens else None
            categories.append('mark')
        else:
            categories.append(inside or (name if word is not None else None))
    if inside:
        raise Problem(f'{path}: expected // +}} before the end')
    return categories


def stripped(path, text):
    kept = [line for line, mark in zip(text.splitlines(), marks(path, text)) if mark is None]
    return '\n'.join(kept) + '\n'


def formatter():
    for name in ('clang-format-14', 'clang-format'):
        if shutil.which(name):
            return name
    return None


def formatted(text):
    style = '--style=file:' + os.path.join(ROOT, '.clang-format')
    return subprocess.run([formatter(), style, '--assume-filename=x.cpp'], input=text, text=True,
                          stdout=subprocess.PIPE, check=True).stdout


def without_literals(text, comments=True):
    """The text with literals emptied, on wish without comments; lines stay where they are."""
    def emptied(found):
        token = found.group(0)
        lines = '\n' * token.count('\n')
        if not token.startswith(('//', '/*')):
            return '""' + lines
        return token if comments else lines
    return TOKEN.sub(emptied, text)


def preprocessor_blanked(code):
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', lambda found: '\n' * found.group(0).count('\n'),
                  code, flags=re.MULTILINE)


def kind_of_brace(header, scope):
    """What a `{` after `header` opens: namespace, type, function, init, or block."""
    if scope not in ('namespace', 'type'):
        return 'block'
    if re.search(r'\bnamespace\b', header):
        return 'namespace'
    if '(' not in header:
        return 'type' if re.search(r'\b(class|struct|union|enum)\b', header) else 'init'
    if re.search(r'(^|[^=!<>])=([^=]|$)', header.split('(')[0]):
        return 'init'
    # After `) : member` a brace initialises a member of the constructor.
    if re.search(r'\) ?(noexcept ?)?:[^:]', header) and re.search(r'[\w>]$', header):
        return 'init'
    return 'function' if AFTER_PARAMETERS.search(header) or header[-1:] in ')}' else 'init'


def excluded_lines(code):
    """Numbers of the lines that hold function signatures or assertions."""
    lines, scopes, parentheses, header, begin, number = set(), ['namespace'], 0, '', 1, 1
    for char in preprocessor_blanked(code):
        if char == '\n':
            number += 1
        text = ' '.join(header.split())
        outer = scopes[-1] in ('namespace', 'type')
        if char in '{};' and (parentheses == 0 or scopes[-1] == 'init'):
            kind = kind_of_brace(text, scopes[-1]) if char == '{' else ''
            declares = char == ';' and outer and '(' in text and '=' not in text.split('(')[0]
            if kind == 'function' or declares or (char == ';' and ASSERTION.match(text)):
                lines.update(range(begin, number + 1))
            if char == '{':
                scopes.append(kind)
            elif char == '}' and len(scopes) > 1:
                header = header + '}' if scopes[-1] == 'init' else header
                if scopes.pop() == 'init':
                    continue
            if kind == 'init':
                continue
            header = ''
            continue
        parentheses += (char in '([') - (char in ')]')
        if not header.strip() and not char.isspace():
            begin = number
        header += char
    return lines


def counted(text):
    """For each line of the text whether it counts."""
    code = without_literals(text, comments=False)
    excluded = excluded_lines(code)
    # A mark's line counts by its code, like any other.
    return [number not in excluded and re.search(r'\w', line) is not None
            and not FRAME.match(line.rstrip())
            for number, line in enumerate(code.splitlines(), 1)]


def count(path):
    text = read(path)
    if formatted(text) != text:
        raise Problem(f'expected {path} to be formatted, clang-format changes it')
    counts = dict.fromkeys(('base',) + CATEGORIES, 0)
    counts['base'] = sum(counted(formatted(stripped(path, text))))
    lines = counted(text)
    for counts_here, category in zip(lines, marks(path, text)):
        if counts_here and category in CATEGORIES:
            counts[category] += 1
    reformatted = sum(lines) - sum(counts.values())
    counts['other'] += max(reformatted, 0)
    return counts


def added(counts):
    return sum(counts[category] for category in CATEGORIES)


def row(name, counts, ratio):
    base = max(counts['base'], 1)
    values = [counts[key] for key in ('base',) + CATEGORIES] + [added(counts)]
    cells = ''.join(f'{value / base:8.2f}' if ratio else f'{value:8d}' for value in values)
    return f'{name:<42}{cells}'


def table(files, total):
    titles = ''.join(f'{title:>8}' for title in ('Base', 'In', 'Out', 'Alloc', 'Tune', 'Remap',
                                                 'Other', 'Added'))
    lines = [f'{"":<42}{titles}']
    lines += [row(path, counts, ratio=False) for path, counts in files.items()]
    lines += [row('all, lines', total, ratio=False), row('all, per base line', total, ratio=True)]
    lines += [row('MegaOps (Table 1), lines', PAPER, ratio=False),
              row('MegaOps (Table 1), per base line', PAPER, ratio=True)]
    return '\n'.join(lines)


def count_command(options):
    if formatter() is None:
        print('skipped: clang-format is not installed')
        return 77
    files = {os.path.relpath(path, ROOT): count(path) for path in options.sources}
    total = {key: sum(counts[key] for counts in files.values()) for key in ('base',) + CATEGORIES}
    if total['base'] == 0:
        raise Problem('expected base lines in ' + ', '.join(options.sources) + ', got none')
    ratio = added(total) / total['base']
    print(table(files, total))
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'files': files, 'total': total, 'added': added(total),
                       'ratio': round(ratio, 4), 'paper': PAPER}, file, indent=1)
            file.write('\n')
    if options.most is not None and ratio > options.most:
        raise Problem(f'expected at most {options.most} added lines per base line, got {ratio:.3f}')
    return 0


def strip_command(options):
    text = stripped(options.source, read(options.source))
    text = formatted(text) if formatter() else text
    os.makedirs(os.path.dirname(os.path.abspath(options.result)), exist_ok=True)
    with open(options.result, 'w', encoding='utf-8') as file:
        file.write(text)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    commands = parser.add_subparsers(required=True)
    counting = commands.add_parser('count')
    counting.add_argument('--json', metavar='FILE')
    counting.add_argument('--most', type=float, metavar='RATIO')
    counting.add_argument('sources', nargs='+', metavar='SOURCE')
    counting.set_defaults(run=count_command)
    stripping = commands.add_parser('strip')
    stripping.add_argument('source', metavar='SOURCE')
    stripping.add_argument('result', metavar='RESULT')
    stripping.set_defaults(run=strip_command)
    options = parser.parse_args()
    try:
        return options.run(options)
    except (Problem, OSError) as problem:
        print(f'error: {problem}', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
