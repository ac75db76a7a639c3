# Finds the CUDA toolkit; used by the build and by the installed package.
# FindCUDAToolkit of CMake 3.25 touches the target CUDA::nvToolsExt, which CUDA 13 no longer has,
# when the project requires 3.25 or later; a smaller number for the length of the call avoids it.
set(tileweave_saved_minimum "${CMAKE_MINIMUM_REQUIRED_VERSION}")
if(CMAKE_VERSION VERSION_LESS 3.26)
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
endif()
find_package(CUDAToolkit 13.0 REQUIRED)
set(CMAKE_MINIMUM_REQUIRED_VERSION "${tileweave_saved_minimum}")
unset(tileweave_saved_minimum)
