// Which compiler is reading: the library's only preprocessor conditionals live here.
//
// TW_HOST_DEVICE marks pure functions (tile algebra, layouts, protocol templates) that the same
// source serves on the host, on the emulated device and on a GPU. TW_NO_INLINE and TW_ROLLED_LOOP
// keep rare paths out of a kernel's straight line: a GPU fetches cold code from memory. TW_SM90 is
// true while device code is compiled for sm_90 or later, where bulk copies and programmatic
// dependent launch exist. TW_TSAN and TW_ASAN are true in builds under ThreadSanitizer and
// AddressSanitizer, which have to be told of every switch between the emulated device's fibers.
// TW_ON_HOST(...) is its argument in host code and nothing in device code, which cannot throw.
#pragma once

#if defined(__CUDACC__)
#define TW_HOST_DEVICE __host__ __device__
#define TW_NO_INLINE __noinline__
#else
#define TW_HOST_DEVICE
#define TW_NO_INLINE [[gnu::noinline]]
#endif

#if defined(__CUDA_ARCH__)
#define TW_ROLLED_LOOP _Pragma("unroll 1")
#define TW_ON_HOST(...)
#else
#define TW_ROLLED_LOOP
#define TW_ON_HOST(...) __VA_ARGS__
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TW_SM90 true
#else
#define TW_SM90 false
#endif

#if defined(__has_feature)
#define TW_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TW_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || TW_HAS_FEATURE(thread_sanitizer)
#define TW_TSAN true
#else
#define TW_TSAN false
#endif

#if defined(__SANITIZE_ADDRESS__) || TW_HAS_FEATURE(address_sanitizer)
#define TW_ASAN true
#else
#define TW_ASAN false
#endif
