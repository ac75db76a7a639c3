#!/usr/bin/env python3
"""One JSON and one table of what measure_decode.sh or measure_baselines.sh left in a folder.

usage: measurements.py decode|baselines FOLDER [--json FILE]

Bars are those of the issue that the measurements are for; what misses one is said at the end. What
was not measured is left out of the table and named. Exit status 1 where there is nothing at all.
"""
import argparse
import json
import os
import sys

MS_BARS = {'llama-3.2-1b': 0.70, 'qwen3-0.6b': 0.52, 'qwen3-1.7b': 1.00, 'qwen3-8b': 3.65}
STAGES_GAIN = {'qwen3-0.6b': 1.20, 'llama-3.2-1b': 1.10, 'qwen3-1.7b': 1.10, 'qwen3-8b': 1.03}
OPS_GAIN = {'qwen3-0.6b': 1.25, 'llama-3.2-1b': 1.15}
CHAIN_SHARE = {'square 34 MB': 78, 'square 77 MB': 91, 'square 136 MB': 94}  # percent, one row
ALONE_US = {1: 0.8, 16: 1.5}     # beyond the bare read, by rows
ATTENTION_US = 3.0               # per layer, batch 1, context up to 1024
ATTENTION_SHARE = 85             # percent of a bare read, alone
SHARE_FALL = 10                  # points from batch 1 to 16
NO_SLOWER = 0.995                # of the better of serial and pdl
LIBRARY_GAIN = {'llama-3.2-1b': 1.15, 'qwen3-8b': 1.03}
TORCH_GAIN = {'llama-3.2-1b': 1.3, 'qwen3-8b': 1.1}
HUGGING_FACE_GAIN = {'llama-3.2-1b': 2.5, 'qwen3-8b': 1.5}


class Table:
    def __init__(self):
        self.lines, self.bars = [], []

    def bar(self, what, value, limit, at_most=True, digits=2):
        """A number with its bar; remembers whether it holds."""
        holds = value <= limit if at_most else value >= limit
        sign = '<=' if at_most else '>='
        self.bars.append({'what': what, 'value': value, 'bar': limit, 'holds': holds})
        self.lines.append(f"{what:<66} {value:>9.{digits}f}  {sign} {limit:<6g} "
                          f"{'' if holds else 'MISSED'}")


def load(folder):
    """Every JSON of the folder by the name of its step."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith('.json') and name not in ('decode.json', 'baselines.json'):
            try:
                with open(os.path.join(folder, name), encoding='utf-8') as file:
                    found[name[:-5]] = json.load(file)
            except ValueError as error:
                print(f'{name}: not read ({error})')
    return found


def arms_of(case):
    return {arm['arm']: arm for arm in case['arms'] if 'failure' not in arm}


def cases_of(report):
    """(batch, context) to case, of contexts that do not grow."""
    return {(c['batch'], c['context']): c for c in report['cases'] if not c.get('grows')}


def decode_table(found, table):
    for model, most_ms in MS_BARS.items():
        report = found.get(f'decode_{model}')
        if report is None:
            continue
        cases = cases_of(report)
        table.lines.append(f"\n{model}, stages, ms per step of `overlap` (share of the rate), "
                           f"{report['streaming_rate'] * 1e-12:.2f} TB/s")
        for context in sorted({key[1] for key in cases}):
            cells, shares = [], {}
            for batch in sorted({key[0] for key in cases}):
                arm = arms_of(cases[batch, context]).get('overlap')
                if arm is None:
                    cells.append(f'{batch}: failed')
                    continue
                shares[batch] = arm['share_of_streaming_rate'] * 100
                cells.append(f"{batch}: {arm['ms_per_step']:.3f} ({shares[batch]:.0f} %)")
            table.lines.append(f'  context {context}: ' + '  '.join(cells))
            if 1 in shares and 16 in shares:
                table.bar(f'{model}, context {context}: points of share lost, batch 1 to 16',
                          shares[1] - shares[16], SHARE_FALL, digits=1)
        for (batch, context), case in sorted(cases.items()):
            arms = arms_of(case)
            if not {'overlap', 'serial', 'pdl'} <= arms.keys():
                table.lines.append(f'  batch {batch}, context {context}: an arm failed')
                continue
            ms = {name: arm['ms_per_step'] for name, arm in arms.items()}
            if batch == 1 and context == 128:
                table.bar(f'{model}: ms per step, batch 1, context 128', ms['overlap'], most_ms,
                          digits=3)
                table.bar(f'{model}: gain over serial, stages', ms['serial'] / ms['overlap'],
                          STAGES_GAIN[model], at_most=False)
            ratio = min(ms['serial'], ms['pdl']) / ms['overlap']
            if ratio < NO_SLOWER or (batch, context) == (1, 128):
                table.bar(f'{model}, batch {batch}, context {context}: better of serial and pdl '
                          '/ overlap', ratio, NO_SLOWER, at_most=False, digits=3)
            if batch == 1 and 'attention_us_per_layer' in case:
                table.bar(f'{model}, context {context}: us of attention per layer',
                          case['attention_us_per_layer'], ATTENTION_US)
    for model, least in OPS_GAIN.items():
        report = found.get(f'ops_{model}')
        for case in report['cases'] if report else []:
            ms = {name: arm['ms_per_step'] for name, arm in arms_of(case).items()}
            if {'serial', 'overlap'} <= ms.keys():
                table.lines.append(f'\n{model}, ops: ' + ', '.join(
                    f'{name} {value:.3f} ms' for name, value in ms.items()))
                table.bar(f'{model}: gain over serial, ops', ms['serial'] / ms['overlap'], least,
                          at_most=False)


def growing_table(found, table):
    for name, report in found.items():
        if not name.startswith('grow_'):
            continue
        for case in report['cases']:
            ms = ', '.join(f"{arm} {numbers['ms_per_step']:.3f}"
                           for arm, numbers in arms_of(case).items())
            table.lines.append(f"{name[5:]}, {case['context']} + {case['steps']} tokens, mean ms "
                               f'per step: {ms}')


def best_rows(report, kind):
    """The quickest arm of every case, for each number of rows and keys."""
    best = {}
    for row in report['rows']:
        key = row['case'], row['rows'], row.get('context', 0)
        if row['kind'] == kind and (key not in best or row['us'] < best[key]['us']):
            best[key] = row
    return best


def kernel_table(found, table):
    gemm, attention = found.get('gemm'), found.get('attention')
    if gemm:
        table.lines.append('')
        for (case, rows, _), row in best_rows(gemm, 'alone').items():
            if row['mb'] >= 8 and rows in ALONE_US:
                table.bar(f'{case}, {rows} rows, alone: us beyond a bare read',
                          row['us'] - row['beside_us'], ALONE_US[rows])
        for (case, rows, _), row in best_rows(gemm, 'chain').items():
            if rows == 1 and case in CHAIN_SHARE:
                table.bar(f'{case}, 1 row, chain: percent of the streaming rate',
                          row['mb'] * 1e14 / row['us'] / gemm['streaming_rate'],
                          CHAIN_SHARE[case], at_most=False, digits=1)
    if attention:
        for (case, rows, context), row in best_rows(attention, 'alone').items():
            if row['mb'] >= 64:
                table.bar(f'attention, {case}, {rows} rows, {context} keys: percent of a bare read',
                          100 * row['beside_us'] / row['us'], ATTENTION_SHARE, at_most=False,
                          digits=1)
        for (case, _, context), row in best_rows(attention, 'chain').items():
            table.lines.append(f"attention, {case}, {context} keys, chain: "
                               f"{row['us'] - row['beside_us']:.2f} us ({row['arm']})")


def prefill_table(found, table):
    for name, report in found.items():
        if name.startswith('prefill_'):
            model, _, wide = name[8:].partition('_')
            table.lines.append(f"\n{model}, prefill, wide products {wide}: " + ', '.join(
                f"{p['tokens']} tokens {p['ms']:.1f} ms ({p['tokens_per_second']:.0f} tokens/s, "
                f"{p['flops_per_second'] * 1e-12:.0f} TFLOP/s)" for p in report['prompts']))


def wide_table(found, table):
    """Products of many rows: ours at its best beside the library's."""
    library, ours = {}, {}
    for row in found.get('wide_gemm', []):
        key = row['rows'], row['n'], row['k']
        if row['arm'] == 'cuBLASLt':
            library[key] = row['us']
        elif row['arm'].startswith('wide_gemm'):
            ours[key] = min(row['us'], ours.get(key, row['us']))
    for key in sorted(library.keys() & ours.keys()):
        table.lines.append(f'wide_gemm, {key[0]} rows, {key[1]} x {key[2]}: {ours[key]:.1f} us, '
                           f'cuBLASLt {library[key]:.1f} ({library[key] / ours[key]:.2f} x)')


def against(table, title, results, ours, bars):
    """Baselines by model and batch against our steps, context 128."""
    for row in results:
        model, batch = row['model'], row['batch']
        mine = ours.get((model, batch))
        if mine is None or 'ms_per_step' not in row:
            table.lines.append(f"{title}, {model}, batch {batch}: not measured "
                               f"({row.get('not_measured', 'no step of ours beside it')})")
            continue
        table.lines.append(f"{title}, {model}, batch {batch}: {row['ms_per_step']:.3f} ms, "
                           f'ours {mine:.3f}')
        if model in bars:
            table.bar(f'{title} / ours, {model}, batch {batch}', row['ms_per_step'] / mine,
                      bars[model], at_most=False)


def our_steps(found, prefix):
    ours = {}
    for name, report in found.items():
        if name.startswith(prefix):
            for (batch, context), case in cases_of(report).items():
                arm = arms_of(case).get('overlap')
                if context == 128 and arm:
                    ours[name[len(prefix):], batch] = arm['ms_per_step']
    return ours


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('kind', choices=('decode', 'baselines'))
    parser.add_argument('folder')
    parser.add_argument('--json', help='file for everything that was measured, and the bars')
    options = parser.parse_args()
    found = load(options.folder)
    if not found:
        sys.exit(f'error: nothing was measured in {options.folder}')
    table = Table()
    if options.kind == 'decode':
        decode_table(found, table)
        growing_table(found, table)
        kernel_table(found, table)
        wide_table(found, table)
        prefill_table(found, table)
        table.lines.append('')
        against(table, '(iii) cuBLASLt graph', found.get('library', {}).get('results', []),
                our_steps(found, 'decode_'), LIBRARY_GAIN)
    else:
        ours = our_steps(found, 'ours_')
        for name, report in found.items():
            if name.startswith('plain_torch_'):
                against(table, '(ii) plain PyTorch', report['results'], ours, TORCH_GAIN)
            elif name.startswith('hf_'):
                against(table, '(i) transformers', report['results'], ours, HUGGING_FACE_GAIN)
    print('\n'.join(table.lines))
    missed = [bar['what'] for bar in table.bars if not bar['holds']]
    print(f'\n{len(table.bars) - len(missed)} of {len(table.bars)} bars hold'
          + ''.join(f'\n  missed: {what}' for what in missed))
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'what': options.kind, 'bars': table.bars, 'measured': found}, file, indent=1)
            file.write('\n')


if __name__ == '__main__':
    main()
