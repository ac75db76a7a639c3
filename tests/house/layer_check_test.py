#!/usr/bin/env python3
"""Plants each fault in a small tree of its own and demands that layer_check.py names it."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layer_check  # noqa: E402

HEADER = '#pragma once\n'


class LayerCheck(unittest.TestCase):
    def violations(self, files):
        tree = {'tileweave/core/target.h': HEADER, 'tileweave/core/error.h': HEADER,
                'tileweave/plan/node.h': HEADER, 'tileweave/kernels/gemm/gemm.h': HEADER,
                'tileweave/runtime/run.h': HEADER, 'tileweave/sync/atomics.cuh': HEADER}
        tree.update(files)
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                    file.write(text)
            return list(layer_check.check(root))

    def finds(self, path, text, sentence):
        found = self.violations({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path), found[0])
        self.assertIn(sentence, found[0])

    def accepts(self, path, text):
        self.assertEqual(self.violations({path: text}), [])

    def test_accepts_a_clean_tree(self):
        self.assertEqual(self.violations({}), [])

    def test_accepts_a_folder_above_and_the_own_folder(self):
        self.accepts('tileweave/runtime/a.cpp', '#include "tileweave/plan/node.h"\n'
                                                '#include "tileweave/runtime/run.h"\n')

    def test_finds_a_folder_below(self):
        self.finds('tileweave/plan/a.cpp', '#include "tileweave/runtime/run.h"\n',
                   'plan may include only folders above it, and runtime is not')

    def test_finds_a_kernel_included_by_the_runtime(self):
        self.finds('tileweave/runtime/a.cpp', '#include "tileweave/kernels/gemm/gemm.h"\n',
                   'runtime may include only')

    def test_finds_a_kernel_that_includes_another_kernel(self):
        self.finds('tileweave/kernels/norm/a.cpp', '#include "tileweave/kernels/gemm/gemm.h"\n',
                   'kernels/norm may include only')

    def test_finds_one_device_that_includes_the_other(self):
        found = self.violations({'tileweave/runtime/cuda/a.h': HEADER,
                                 'tileweave/runtime/cpu/b.cpp':
                                     '#include "tileweave/runtime/cuda/a.h"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn('runtime/cpu may include only', found[0])

    def test_finds_the_library_including_its_tests(self):
        found = self.violations({'tests/core/a.h': HEADER,
                                 'tileweave/core/b.cpp': '#include "tests/core/a.h"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn('may not include tests/', found[0])

    def test_finds_a_folder_that_is_no_layer(self):
        self.finds('tileweave/extra/a.h', HEADER, 'no layer')

    def test_finds_an_included_file_that_does_not_exist(self):
        self.finds('tests/core/a_test.cpp', '#include "tileweave/core/gone.h"\n', 'does not exist')

    def test_finds_a_relative_include(self):
        self.finds('tileweave/core/a.cpp', '#include "error.h"\n', 'from the root')

    def test_finds_cuda_headers_outside_cuda_files(self):
        for header in ('<cuda_runtime.h>', '<cuda.h>', '<cub/cub.cuh>', '<nvtx3/nvToolsExt.h>',
                       '<cooperative_groups.h>', '"tileweave/sync/atomics.cuh"'):
            self.finds('tileweave/sync/a.h', HEADER + f'#include {header}\n', 'only .cuh and .cu')
        self.accepts('tileweave/sync/a.cuh', HEADER + '#include <cuda_runtime.h>\n')

    def test_finds_a_conditional_outside_target_h(self):
        for line in ('#if X', '#ifdef X', '  # ifndef X', '#elif X'):
            self.finds('tileweave/tile/a.h', HEADER + line + '\n', 'the only one is in')
        self.accepts('tileweave/core/target.h', HEADER + '#if X\n#endif\n')
        self.accepts('tests/core/a_test.cpp', '#if X\n#endif\n')

    def test_finds_assembly_outside_its_headers(self):
        self.finds('tileweave/runtime/cuda/a.cu', 'asm volatile("nop;");\n', 'has assembly')
        self.accepts('tileweave/sync/ptx.cuh', HEADER + 'asm volatile("nop;");\n')

    def test_finds_a_header_without_pragma_once(self):
        self.finds('tileweave/core/a.h', 'int a();\n', 'no #pragma once')

    def test_finds_a_file_that_is_too_long(self):
        self.accepts('tileweave/core/a.cpp', '\n' * 800)
        self.finds('tileweave/core/a.cpp', '\n' * 801, '801 lines')

    def test_finds_vague_names(self):
        found = self.violations({'tests/utils/a.txt': '', 'tileweave/core/misc.h': HEADER,
                                 'scripts/common.sh': ''})
        self.assertEqual(len(found), 3, found)


if __name__ == '__main__':
    unittest.main()
