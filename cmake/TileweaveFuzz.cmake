# tileweave_fuzz(NAME <x> FOLDERS <folder>... [LINK <library file>...] [DICTIONARY <file>]
#                [MAX_LENGTH <bytes>])
#
# Makes, from <x>_fuzz.cpp of the current folder, the libFuzzer program build/fuzz/<x>_fuzz and the
# ctest case fuzz.<x>, labelled fuzz: 20 s in `make test`, 10 min in `make test-long`, from the seeds
# in corpus/<x>/. A finding fails the case; its input is kept in build/fuzz/findings/<x>/.
# libFuzzer belongs to clang, so the sources of FOLDERS (below tileweave/) are compiled a second time,
# by clang++ with AddressSanitizer and UndefinedBehaviorSanitizer, beside the ordinary build. Without a
# clang++ that can link such a program each case ends as skipped, by name.

set(TILEWEAVE_FUZZ_SECONDS 20 CACHE STRING "Seconds of each fuzz case in `make test`")
set(TILEWEAVE_FUZZ_LONG_SECONDS 600 CACHE STRING "Seconds of each fuzz case in `make test-long`")
set(TILEWEAVE_FUZZ_FLAGS -std=c++20 -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined
                         -fno-sanitize-recover=all)

# Sets TILEWEAVE_FUZZ_CXX to the first clang++ that can link a fuzz program, or
# TILEWEAVE_FUZZ_SKIP_REASON to why there is none.
function(tileweave_find_fuzz_compiler)
  if(TILEWEAVE_FUZZ_CXX)
    return()
  endif()
  set(probe "${PROJECT_BINARY_DIR}/fuzz/probe.cpp")
  file(WRITE "${probe}" "#include <cstddef>
#include <cstdint>
#include <string>
extern \"C\" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }
")
  foreach(name clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19)
    find_program(TILEWEAVE_${name} ${name})
    mark_as_advanced(TILEWEAVE_${name})
    if(NOT TILEWEAVE_${name})
      continue()
    endif()
    execute_process(COMMAND "${TILEWEAVE_${name}}" ${TILEWEAVE_FUZZ_FLAGS} -fsanitize=fuzzer
                            "${probe}" -o "${PROJECT_BINARY_DIR}/fuzz/probe"
                    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(TILEWEAVE_FUZZ_CXX "${TILEWEAVE_${name}}" CACHE INTERNAL "clang++ with libFuzzer")
      return()
    endif()
  endforeach()
  set(TILEWEAVE_FUZZ_SKIP_REASON "no clang++ with libFuzzer was found" PARENT_SCOPE)
endfunction()

# Compiles one source with coverage for the fuzzer; sets <result> to the object.
function(tileweave_fuzz_object result source)
  file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
  set(object "${PROJECT_BINARY_DIR}/fuzz/objects/${path}.o")
  get_filename_component(folder "${object}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  set(includes "-I${PROJECT_SOURCE_DIR}")  # -idirafter: these may be where the C library is
  foreach(directory ${ONIGURUMA_INCLUDE_DIR} ${UTF8PROC_INCLUDE_DIR})
    list(APPEND includes -idirafter "${directory}")
  endforeach()
  add_custom_command(OUTPUT "${object}"
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${TILEWEAVE_FUZZ_CXX}" ${TILEWEAVE_FUZZ_FLAGS}
            -fsanitize=fuzzer-no-link -DFMT_HEADER_ONLY=1 ${includes} -MD -MT "${object}"
            -MF "${object}.d" -c "${source}" -o "${object}"
    DEPENDS "${source}" DEPFILE "${object}.d" VERBATIM
    COMMENT "Compiling ${path} for fuzzing")
  set(${result} "${object}" PARENT_SCOPE)
endfunction()

# One archive for each folder of the library; sets <result> to its target and file.
function(tileweave_fuzz_archive target_result file_result folder)
  string(REPLACE "/" "_" name "${folder}")
  set(target tileweave_fuzz_${name})
  set(archive "${PROJECT_BINARY_DIR}/fuzz/lib${name}.a")
  if(NOT TARGET ${target})
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tileweave/${folder}/*.cpp")
    set(objects "")
    foreach(source IN LISTS sources)
      tileweave_fuzz_object(object "${source}")
      list(APPEND objects "${object}")
    endforeach()
    add_custom_command(OUTPUT "${archive}"
      COMMAND "${CMAKE_COMMAND}" -E rm -f "${archive}"
      COMMAND "${CMAKE_AR}" rcs "${archive}" ${objects}
      DEPENDS ${objects} VERBATIM)
    add_custom_target(${target} DEPENDS "${archive}")
  endif()
  set(${target_result} ${target} PARENT_SCOPE)
  set(${file_result} "${archive}" PARENT_SCOPE)
endfunction()

# Makes build/fuzz/<name>_fuzz as target fuzz_<name>.
function(tileweave_fuzz_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;LINK")
  set(program "${PROJECT_BINARY_DIR}/fuzz/${name}_fuzz")
  tileweave_fuzz_object(object "${CMAKE_CURRENT_SOURCE_DIR}/${name}_fuzz.cpp")
  set(targets "")
  set(archives "")
  foreach(folder IN LISTS arg_FOLDERS)
    tileweave_fuzz_archive(target archive "${folder}")
    list(APPEND targets ${target})
    list(PREPEND archives "${archive}")  # the linker wants users before what they use
  endforeach()
  add_custom_command(OUTPUT "${program}"
    COMMAND "${TILEWEAVE_FUZZ_CXX}" ${TILEWEAVE_FUZZ_FLAGS} -fsanitize=fuzzer "${object}"
            ${archives} ${arg_LINK} -o "${program}"
    DEPENDS "${object}" ${targets} ${archives} VERBATIM
    COMMENT "Linking the fuzz program ${name}")
  add_custom_target(fuzz_${name} ALL DEPENDS "${program}")
endfunction()

function(tileweave_fuzz)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;DICTIONARY;MAX_LENGTH" "FOLDERS;LINK")
  if(TILEWEAVE_FUZZ_SKIP_REASON)
    add_test(NAME fuzz.${arg_NAME} COMMAND sh -c "echo \"skipped: fuzz program ($0)\" && exit 77"
                                           "${TILEWEAVE_FUZZ_SKIP_REASON}")
    set_tests_properties(fuzz.${arg_NAME} PROPERTIES LABELS fuzz SKIP_RETURN_CODE 77)
    return()
  endif()
  tileweave_fuzz_program(${arg_NAME} FOLDERS ${arg_FOLDERS} LINK ${arg_LINK})
  set(options "")
  if(arg_MAX_LENGTH)
    list(APPEND options -max_len=${arg_MAX_LENGTH})
  endif()
  if(arg_DICTIONARY)
    list(APPEND options "-dict=${CMAKE_CURRENT_SOURCE_DIR}/${arg_DICTIONARY}")
  endif()
  # No SKIP_RETURN_CODE here: 77 is also how libFuzzer reports a finding. COST: begin with these.
  add_test(NAME fuzz.${arg_NAME}
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/fuzz_for_a_while.sh"
            "${PROJECT_BINARY_DIR}/fuzz/${arg_NAME}_fuzz"
            "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${arg_NAME}"
            "${PROJECT_BINARY_DIR}/fuzz/findings/${arg_NAME}"
            ${TILEWEAVE_FUZZ_SECONDS} ${TILEWEAVE_FUZZ_LONG_SECONDS} ${options})
  math(EXPR limit "${TILEWEAVE_FUZZ_LONG_SECONDS} + 120")
  set_tests_properties(fuzz.${arg_NAME} PROPERTIES LABELS fuzz TIMEOUT ${limit} COST 100)
endfunction()
