// Which compiler is reading: the library's only preprocessor conditionals live here.
//
// TW_HOST_DEVICE marks pure functions (tile algebra, layouts, protocol templates) that the same
// source serves on the host, on the emulated device and on a GPU. TW_SM90 is true while device code
// is compiled for sm_90 or later, where bulk copies and programmatic dependent launch exist.
#pragma once

#if defined(__CUDACC__)
#define TW_HOST_DEVICE __host__ __device__
#else
#define TW_HOST_DEVICE
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TW_SM90 true
#else
#define TW_SM90 false
#endif
