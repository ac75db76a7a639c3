#!/usr/bin/env python3
"""Makes tests/models/checkpoint/data/official.safetensors.

usage: safetensors_official.py OUTPUT      (needs safetensors and numpy)

The committed file was made with safetensors 0.8.0 and numpy 2.4.6. It holds tensors of several sizes
of elements, a scalar, an empty tensor and metadata, in the order and with the padding of the
reference implementation; the tests demand that our writer makes the same bytes.
"""
import sys

import numpy
import safetensors.numpy

tensors = {
    'words': numpy.arange(6, dtype=numpy.int32).reshape(2, 3),
    'bytes': numpy.array([1, 2, 255], dtype=numpy.uint8),
    'half.b': numpy.array([0.5, -2.0], dtype=numpy.float16),
    'half.a': numpy.array([[1.5], [65504.0]], dtype=numpy.float16),
    'scalar': numpy.array(3.25, dtype=numpy.float32),
    'empty': numpy.zeros((0, 4), dtype=numpy.float32),
    'é"\\': numpy.array([7], dtype=numpy.uint32),
}
safetensors.numpy.save_file(tensors, sys.argv[1], metadata={'format': 'pt'})
