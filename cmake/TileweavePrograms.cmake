# Executables: the command, the examples and the benchmarks. Each links the whole library; with CUDA
# it holds both devices, and its *_without_cuda.cpp are the files that say "not built" otherwise.

# tileweave_program(<target> OUTPUT <name> FOLDER <output folder> SOURCES <file>... [LIBRARIES ...]
#                   [SHARES_LIBRARY])
# SHARES_LIBRARY: as tests do (TileweaveSmallBinaries.cmake); else the program stands alone.
function(tileweave_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SHARES_LIBRARY" "OUTPUT;FOLDER" "SOURCES;LIBRARIES")
  set(cpp ${arg_SOURCES})
  set(cu ${arg_SOURCES})
  list(FILTER cpp EXCLUDE REGEX "\\.cu$")
  list(FILTER cu INCLUDE REGEX "\\.cu$")
  add_executable(${target} ${cpp})
  if(cu)
    tileweave_add_cuda_sources(${target} ${cu})
    list(APPEND arg_LIBRARIES CUDA::cudart_static)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  set(libraries tileweave tileweave_flags fmt::fmt-header-only ${arg_LIBRARIES})
  if(arg_SHARES_LIBRARY)
    tileweave_link(${target} ${libraries})
  else()
    target_link_libraries(${target} PRIVATE ${libraries})
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME "${arg_OUTPUT}"
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${arg_FOLDER}")
endfunction()

# Every folder NN_name below the current one is one example: target example_NN_name, binary
# examples/NN_name.
function(tileweave_examples)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true "${CMAKE_CURRENT_SOURCE_DIR}/[0-9][0-9]_*")
  foreach(folder IN LISTS folders)
    tileweave_sources(own "${folder}")
    if(own_cpp OR own_cu)
      get_filename_component(name "${folder}" NAME)
      tileweave_program(example_${name} OUTPUT ${name} FOLDER examples SOURCES ${own_cpp} ${own_cu})
      set_property(GLOBAL APPEND PROPERTY TILEWEAVE_EXAMPLES ${name})
    endif()
  endforeach()
endfunction()

# Every *_bench.cpp or *_bench.cu of the current folder is one benchmark, binary bench/<stem>; the
# folder's other sources are linked into each.
function(tileweave_benchmarks)
  tileweave_sources(own "${CMAKE_CURRENT_SOURCE_DIR}")
  set(mains ${own_cpp} ${own_cu})
  set(shared ${mains})
  list(FILTER mains INCLUDE REGEX "_bench\\.(cpp|cu)$")
  list(FILTER shared EXCLUDE REGEX "_bench\\.(cpp|cu)$")
  foreach(main IN LISTS mains)
    get_filename_component(stem "${main}" NAME_WE)
    tileweave_program(${stem} OUTPUT ${stem} FOLDER bench SOURCES ${main} ${shared} SHARES_LIBRARY)
  endforeach()
endfunction()
