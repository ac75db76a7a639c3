# Tests and benchmarks of a build with both devices share one library, libtileweave_for_tests.so, in
# place of an archive of every layer in each of them, and carry no lines of code: a tenth of the
# bytes. It lies beside the GPU tests, so that their folder can be taken to a machine with a GPU. The
# command, the examples and an installation link archives, as before.
#
# They share the CUDA runtime too, a copy of which lies beside the library: two runtimes in a process
# would not know each other's kernels. TILEWEAVE_SMALL_BINARIES=OFF: every test links the layers that it names and no more, which
# is quicker to build for whoever works on one of them.

set(TILEWEAVE_SHARES_LIBRARY OFF)
if(TILEWEAVE_SMALL_BINARIES AND TILEWEAVE_WITH_CUDA AND PROJECT_IS_TOP_LEVEL)
  set(TILEWEAVE_SHARES_LIBRARY ON)
  set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
endif()

# tileweave_shared_library(<static library>...): the library of all layers, and of these.
function(tileweave_shared_library)
  if(NOT TILEWEAVE_SHARES_LIBRARY)
    return()
  endif()
  get_property(layers GLOBAL PROPERTY TILEWEAVE_LAYER_TARGETS)
  foreach(layer IN LISTS layers ARGN)
    get_target_property(type ${layer} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND archives ${layer})
    endif()
  endforeach()
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/nothing.cpp" "")
  add_library(tileweave_for_tests SHARED "${CMAKE_CURRENT_BINARY_DIR}/nothing.cpp")
  set_target_properties(tileweave_for_tests PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/gpu"
    CUDA_RUNTIME_LIBRARY Shared BUILD_RPATH "$ORIGIN")
  # Every archive whole and once, the shared runtime before what asks for the static one; then as
  # usual, which adds only what they need of others.
  list(TRANSFORM archives REPLACE ".+" "$<TARGET_FILE:\\0>" OUTPUT_VARIABLE files)
  target_link_libraries(tileweave_for_tests PRIVATE
    -Wl,--whole-archive ${files} -Wl,--no-whole-archive CUDA::cudart ${archives})
  add_custom_command(TARGET tileweave_for_tests POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:CUDA::cudart>
            "${PROJECT_BINARY_DIR}/tests/gpu/libcudart.so.${CUDAToolkit_VERSION_MAJOR}")
  target_include_directories(tileweave_for_tests INTERFACE "${PROJECT_SOURCE_DIR}")
  foreach(layer IN LISTS layers ARGN)  # what its headers need, without its archive
    foreach(kind INCLUDE_DIRECTORIES SYSTEM_INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
      set_property(TARGET tileweave_for_tests APPEND PROPERTY
                   INTERFACE_${kind} $<TARGET_PROPERTY:${layer},INTERFACE_${kind}>)
    endforeach()
  endforeach()
  tileweave_strip(tileweave_for_tests)
endfunction()

# tileweave_link(<target> <library>...): links layers, or the library that has them all.
function(tileweave_link target)
  if(NOT TARGET tileweave_for_tests)
    target_link_libraries(${target} PRIVATE ${ARGN})
    return()
  endif()
  get_property(layers GLOBAL PROPERTY TILEWEAVE_LAYER_TARGETS)
  set(others ${ARGN})
  list(REMOVE_ITEM others tileweave tileweave_cli CUDA::cudart_static ${layers})
  target_link_libraries(${target} PRIVATE tileweave_for_tests CUDA::cudart ${others})
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  tileweave_strip(${target})
endfunction()

function(tileweave_strip target)
  if(TILEWEAVE_SHARES_LIBRARY)
    target_link_options(${target} PRIVATE LINKER:--strip-all)
  endif()
endfunction()
