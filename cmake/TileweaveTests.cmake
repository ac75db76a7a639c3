# tileweave_tests(NAME <x> DEPENDS <layer>... [CUDA_DEPENDS <layer>...] [LIBRARIES <target>...])
#
# Makes, from the sources of the current folder (not of its children):
#   tileweave_<x>_tests      *_test.cpp; every test case is one ctest case, labelled <x>
#   tileweave_<x>_gpu_tests  *_test.cu and *_cuda_test.cpp, when CUDA is built; labelled <x> and gpu.
#                            Without a GPU each case ends as skipped, by name, never as passed.
#   <stem>                   one program per *_program.cpp, for tests that start a process; the tests
#                            find it in the folder named by the macro TW_PROGRAM_DIR
# *_support.cpp are linked into both test executables, *_support.cu into the second. Suites whose
# name starts with Long are labelled long instead of <x> and run only in `make test-long`.

set(TILEWEAVE_TEST_TIMEOUT 300 CACHE STRING "Seconds after which a test case counts as hung")
set(TILEWEAVE_LONG_TEST_TIMEOUT 1800 CACHE STRING "The same for test cases labelled long")

if(TILEWEAVE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# Registers the cases of <target>: labelled <labels>, suites named Long* labelled long alone.
function(tileweave_discover target labels)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PREFIX" "PROPERTIES")
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_FILTER "-Long*:*/Long*" TEST_LIST ${target}_list TEST_PREFIX ${arg_PREFIX}
    PROPERTIES TIMEOUT ${TILEWEAVE_TEST_TIMEOUT} ${arg_PROPERTIES})
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_FILTER "Long*:*/Long*" TEST_LIST ${target}_long_list TEST_PREFIX ${arg_PREFIX}
    PROPERTIES LABELS long TIMEOUT ${TILEWEAVE_LONG_TEST_TIMEOUT} ${arg_PROPERTIES})
  # A list of labels does not survive gtest_discover_tests; ctest reads this file after its lists.
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake")
  file(WRITE "${script}" "foreach(test IN LISTS ${target}_list)
  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${labels}\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()

function(tileweave_tests)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "DEPENDS;CUDA_DEPENDS;LIBRARIES")
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}")
  file(GLOB tests CONFIGURE_DEPENDS "${folder}/*_test.cpp")
  file(GLOB gpu_tests CONFIGURE_DEPENDS "${folder}/*_test.cu" "${folder}/*_cuda_test.cpp")
  file(GLOB support CONFIGURE_DEPENDS "${folder}/*_support.cpp")
  file(GLOB gpu_support CONFIGURE_DEPENDS "${folder}/*_support.cu")
  file(GLOB programs CONFIGURE_DEPENDS "${folder}/*_program.cpp")
  list(FILTER tests EXCLUDE REGEX "_cuda_test\\.cpp$")
  tileweave_layer_targets(layers "" ${arg_DEPENDS})

  foreach(source IN LISTS programs)
    get_filename_component(stem "${source}" NAME_WE)
    add_executable(${stem} "${source}")
    tileweave_link(${stem} ${layers} tileweave_flags ${arg_LIBRARIES})
    target_include_directories(${stem} PRIVATE "${PROJECT_SOURCE_DIR}")
    list(APPEND program_targets ${stem})
  endforeach()

  if(tests)
    set(target tileweave_${arg_NAME}_tests)
    add_executable(${target} ${tests} ${support})
    tileweave_link(${target} ${layers} tileweave_flags GTest::gtest_main ${arg_LIBRARIES})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_definitions(${target} PRIVATE TW_PROGRAM_DIR="${CMAKE_CURRENT_BINARY_DIR}")
    if(program_targets)
      add_dependencies(${target} ${program_targets})
    endif()
    tileweave_discover(${target} ${arg_NAME} PREFIX ${arg_NAME}.)
  endif()

  if(gpu_tests AND TILEWEAVE_WITH_CUDA)
    set(target tileweave_${arg_NAME}_gpu_tests)
    tileweave_layer_targets(cuda_layers _cuda ${arg_DEPENDS} ${arg_CUDA_DEPENDS})
    tileweave_layer_targets(cuda_only "" ${arg_CUDA_DEPENDS})
    set(cpp ${gpu_tests} ${support} ${gpu_support} "${PROJECT_SOURCE_DIR}/tests/gpu_test_main.cu")
    set(cu ${cpp})
    list(FILTER cpp EXCLUDE REGEX "\\.cu$")
    list(FILTER cu INCLUDE REGEX "\\.cu$")
    add_executable(${target} ${cpp})
    tileweave_add_cuda_sources(${target} ${cu})
    tileweave_link(${target} ${layers} ${cuda_layers} ${cuda_only} tileweave_flags GTest::gtest
                   CUDA::cudart_static ${arg_LIBRARIES})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    # One folder for all of them, so that they can be taken to a machine with a GPU.
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/gpu")
    tileweave_discover(${target} "${arg_NAME};gpu" PREFIX ${arg_NAME}.gpu.
                       PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK gpu)
  endif()
endfunction()
