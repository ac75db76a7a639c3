#!/usr/bin/env python3
"""scripts/measurements.py on made-up measurements: bars hold and are missed where they should."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../scripts/measurements.py')


def case(batch, serial, pdl, overlap, **more):
    arms = [{'arm': name, 'ms_per_step': ms, 'share_of_streaming_rate': 0.6 / batch}
            for name, ms in (('serial', serial), ('pdl', pdl), ('overlap', overlap))]
    return {'batch': batch, 'context': 128, 'arms': arms, **more}


def kernels(*rows):
    return {'streaming_rate': 4e12,
            'rows': [dict(zip(('case', 'kind', 'rows', 'mb', 'arm', 'us', 'beside_us'), row))
                     for row in rows]}


class Measurements(unittest.TestCase):
    def says(self, kind, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    file.write(content if isinstance(content, str) else json.dumps(content))
            report = os.path.join(folder, 'all.json')
            result = subprocess.run([sys.executable, SCRIPT, kind, folder, '--json', report],
                                    text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    check=False)
            if result.returncode != 0:
                return result.returncode, result.stderr, {}
            with open(report, encoding='utf-8') as file:
                bars = {bar['what']: bar for bar in json.load(file)['bars']}
        return 0, result.stdout, bars

    def test_steps_gains_and_attention(self):
        status, said, bars = self.says('decode', {'decode_llama-3.2-1b.json': {
            'streaming_rate': 4e12,
            'cases': [case(1, 0.9, 0.69, 0.68, attention_us_per_layer=3.5),
                      case(16, 1.5, 1.0, 1.2),
                      case(1, 9, 9, 9, grows=True)]}})
        self.assertEqual(status, 0)
        self.assertTrue(bars['llama-3.2-1b: ms per step, batch 1, context 128']['holds'])
        self.assertTrue(bars['llama-3.2-1b: gain over serial, stages']['holds'])
        missed = [what for what, bar in bars.items() if not bar['holds']]
        self.assertEqual(missed, [
            'llama-3.2-1b, context 128: points of share lost, batch 1 to 16',
            'llama-3.2-1b, context 128: us of attention per layer',
            'llama-3.2-1b, batch 16, context 128: better of serial and pdl / overlap'])
        self.assertIn(f'{len(bars) - 3} of {len(bars)} bars hold', said)

    def test_prompts_by_both_wide_products(self):
        prompt = {'tokens': 512, 'ms': 10.0, 'tokens_per_second': 51200, 'flops_per_second': 3e14}
        product = {'rows': 128, 'n': 64, 'k': 32}
        status, said, _ = self.says('decode', {
            'prefill_qwen3-8b_own.json': {'prompts': [prompt]},
            'prefill_qwen3-8b_vendor.json': {'prompts': [{**prompt, 'ms': 5.0}]},
            'wide_gemm.json': [{**product, 'arm': 'cuBLASLt', 'us': 20.0},
                               {**product, 'arm': 'wide_gemm, full, split 1', 'us': 50.0},
                               {**product, 'arm': 'wide_gemm, programmatic, split 1', 'us': 40.0},
                               {**product, 'arm': 'skinny_gemm, 64 rows', 'us': 1.0}]})
        self.assertEqual(status, 0)
        self.assertIn('qwen3-8b, prefill, wide products own: 512 tokens 10.0 ms', said)
        self.assertIn('qwen3-8b, prefill, wide products vendor: 512 tokens 5.0 ms', said)
        self.assertIn('wide_gemm, 128 rows, 64 x 32: 40.0 us, cuBLASLt 20.0 (0.50 x)', said)

    def test_an_arm_that_failed_is_named_and_the_rest_goes_on(self):
        broken = case(1, 1, 1, 1)
        broken['arms'][2] = {'arm': 'overlap', 'failure': 'a hang'}
        status, said, bars = self.says('decode', {'decode_qwen3-8b.json': {
            'streaming_rate': 4e12, 'cases': [broken]}})
        self.assertEqual((status, bars), (0, {}))
        self.assertIn('an arm failed', said)

    def test_kernels_count_with_their_best_arm(self):
        _, _, bars = self.says('decode', {'gemm.json': kernels(
            ('square 34 MB', 'alone', 1, 33.5, 'slow', 12.0, 10.0),
            ('square 34 MB', 'alone', 1, 33.5, 'quick', 10.5, 10.0),
            ('square 34 MB', 'chain', 1, 33.5, 'chain', 12.0, 10.0),
            ('square 34 MB', 'alone', 16, 33.5, 'many', 12.0, 10.0))})
        self.assertAlmostEqual(
            bars['square 34 MB, 1 row, chain: percent of the streaming rate']['value'], 69.79, 1)
        self.assertEqual({what.split(':')[0]: bar['holds'] for what, bar in bars.items()},
                         {'square 34 MB, 1 rows, alone': True, 'square 34 MB, 16 rows, alone': False,
                          'square 34 MB, 1 row, chain': False})

    def test_baselines_are_held_against_the_steps_beside_them(self):
        _, said, bars = self.says('baselines', {
            'ours_qwen3-8b.json': {'streaming_rate': 4e12, 'cases': [case(1, 5, 4, 4.0)]},
            'hf_qwen3-8b.json': {'results': [
                {'model': 'qwen3-8b', 'batch': 1, 'ms_per_step': 5.0},
                {'model': 'qwen3-8b', 'batch': 8, 'not_measured': 'no time'}]},
            'plain_torch_qwen3-8b.json': {'results': [
                {'model': 'qwen3-8b', 'batch': 1, 'ms_per_step': 4.6}]}})
        self.assertFalse(bars['(i) transformers / ours, qwen3-8b, batch 1']['holds'])
        self.assertTrue(bars['(ii) plain PyTorch / ours, qwen3-8b, batch 1']['holds'])
        self.assertIn('batch 8: not measured (no time)', said)

    def test_nothing_measured_is_an_error_and_a_broken_file_is_named(self):
        status, said, _ = self.says('decode', {})
        self.assertEqual(status, 1)
        self.assertIn('nothing was measured', said)
        _, said, _ = self.says('decode', {'gemm.json': '{"rows": [', 'x.json': {}})
        self.assertIn('gemm.json: not read', said)


if __name__ == '__main__':
    unittest.main()
