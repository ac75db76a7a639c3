# tileweave_without_overlap(<target> DEPENDS <layer>... SOURCES <file>...)
#
# An object library of op-sequence sources without the lines that scripts/usability.py counts as
# there for overlap alone. What is unused without them is an error: it has to be marked as well. An
# executable that links <target>, and then the layer whose archive holds the originals, runs the
# stripped ones: the linker takes a member of an archive only for a name that is still missing.

function(tileweave_without_overlap target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;SOURCES")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(script "${PROJECT_SOURCE_DIR}/scripts/usability.py")
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(name "${source}" NAME)
    set(result "${CMAKE_CURRENT_BINARY_DIR}/${target}/${name}")
    add_custom_command(OUTPUT "${result}" DEPENDS "${source}" "${script}" VERBATIM
                       COMMAND ${Python3_EXECUTABLE} "${script}" strip "${source}" "${result}"
                       COMMENT "Taking the overlap lines out of ${name}")
    list(APPEND results "${result}")
  endforeach()
  add_library(${target} OBJECT ${results})
  tileweave_layer_targets(layers "" ${arg_DEPENDS})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${layers} tileweave_library_flags fmt::fmt-header-only)
  target_compile_options(${target} PRIVATE -Werror=unused)
endfunction()
