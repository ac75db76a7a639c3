# Decides whether the CUDA device is built. Sets TILEWEAVE_WITH_CUDA and, when it is off,
# TILEWEAVE_CUDA_SKIP_REASON: one sentence that the build and the tests print.

set(TILEWEAVE_CUDA_MINIMUM 13.0)
set(TILEWEAVE_WITH_CUDA OFF)
set(TILEWEAVE_CUDA_SKIP_REASON "")
set(TILEWEAVE_CUDA_LAYERS "")  # layers that exist only with CUDA

if(NOT TILEWEAVE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TILEWEAVE_CUDA is '${TILEWEAVE_CUDA}'; expected AUTO, ON or OFF")
endif()

if(TILEWEAVE_CUDA STREQUAL "OFF")
  set(TILEWEAVE_CUDA_SKIP_REASON "TILEWEAVE_CUDA is OFF")
elseif(TILEWEAVE_SANITIZE)
  set(TILEWEAVE_CUDA_SKIP_REASON "host sanitizers (${TILEWEAVE_SANITIZE}) are built without CUDA")
else()
  find_program(TILEWEAVE_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH ENV CUDA_HOME
               PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT TILEWEAVE_NVCC)
    set(TILEWEAVE_CUDA_SKIP_REASON "no nvcc was found, ${TILEWEAVE_CUDA_MINIMUM} or later is needed")
  else()
    execute_process(COMMAND "${TILEWEAVE_NVCC}" --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" ignored "${nvcc_says}")
    if(NOT CMAKE_MATCH_1 OR CMAKE_MATCH_1 VERSION_LESS TILEWEAVE_CUDA_MINIMUM)
      set(TILEWEAVE_CUDA_SKIP_REASON
          "nvcc is release '${CMAKE_MATCH_1}', ${TILEWEAVE_CUDA_MINIMUM} or later is needed")
    else()
      set(TILEWEAVE_WITH_CUDA ON)
    endif()
  endif()
endif()

if(TILEWEAVE_WITH_CUDA)
  set(TILEWEAVE_CUDA_LAYERS runtime_cuda)
  set(CMAKE_CUDA_COMPILER "${TILEWEAVE_NVCC}")
  set(CMAKE_CUDA_ARCHITECTURES "${TILEWEAVE_CUDA_ARCHITECTURES}")
  set(CMAKE_CUDA_FLAGS_RELEASE "-O2 -DNDEBUG")
  enable_language(CUDA)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  include("${CMAKE_CURRENT_LIST_DIR}/tileweave-cuda-toolkit.cmake")
  message(STATUS "tileweave: CUDA device built for ${CMAKE_CUDA_ARCHITECTURES}")
elseif(TILEWEAVE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "TILEWEAVE_CUDA is ON, but ${TILEWEAVE_CUDA_SKIP_REASON}")
else()
  message(STATUS "tileweave: skipped: CUDA device (${TILEWEAVE_CUDA_SKIP_REASON})")
endif()
