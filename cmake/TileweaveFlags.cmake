# Language standard, build type, warnings, sanitizers and compiler cache.
# Everything a target of this project needs is carried by two INTERFACE targets that are never
# installed: tileweave_flags (all targets) and tileweave_library_flags (library code: stricter).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")  # -g1: names and lines in backtraces, small files
  find_program(TILEWEAVE_CCACHE ccache)
  if(TILEWEAVE_CCACHE)
    foreach(language CXX CUDA)
      if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
        set(CMAKE_${language}_COMPILER_LAUNCHER "${TILEWEAVE_CCACHE}")
      endif()
    endforeach()
  endif()
endif()

add_library(tileweave_flags INTERFACE)
# -Wno-restrict: g++ 12 warns falsely inside std::string's operator+ (GCC bug 105651).
target_compile_options(tileweave_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra --expt-relaxed-constexpr -lineinfo
                             --compress-mode=size  # a fifth of the bytes, most of them lines
                             --Werror=cross-execution-space-call>)
if(TILEWEAVE_WERROR)
  target_compile_options(tileweave_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

add_library(tileweave_library_flags INTERFACE)
target_link_libraries(tileweave_library_flags INTERFACE tileweave_flags)
target_compile_options(tileweave_library_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wconversion>)

if(TILEWEAVE_SANITIZE)
  set(known "address,undefined" "thread")
  if(NOT TILEWEAVE_SANITIZE IN_LIST known)
    message(FATAL_ERROR "TILEWEAVE_SANITIZE is '${TILEWEAVE_SANITIZE}'; expected 'address,undefined' or 'thread'")
  endif()
  # -Wno-maybe-uninitialized: g++ 12 warns falsely inside std::function with sanitizers (GCC bug 105562).
  set(flags -fsanitize=${TILEWEAVE_SANITIZE} -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  if(TILEWEAVE_SANITIZE MATCHES "undefined")
    list(APPEND flags -fno-sanitize-recover=all)
  endif()
  target_compile_options(tileweave_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
  add_link_options(-fsanitize=${TILEWEAVE_SANITIZE})
endif()
