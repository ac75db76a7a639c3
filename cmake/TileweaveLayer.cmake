# tileweave_layer(NAME <x> [DEPENDS <layer>...] [CUDA_DEPENDS <layer>...]
#                 [LIBRARIES <target>...] [ONE_TARGET])
#
# One layer is one folder. Makes, from the sources of the current folder (not of its children):
#   tileweave_<x>       from *.cpp: a static library, INTERFACE when the folder has only headers
#   tileweave_<x>_cuda  from *.cu, when CUDA is built
# DEPENDS are layer names; a layer whose folder is still empty is declared, but makes no target, and
# is left out. CUDA_DEPENDS count for the *.cu only. LIBRARIES are third-party targets used inside.
# ONE_TARGET puts *.cpp and *.cu into tileweave_<x> (folders whose .cpp need their .cu).
#
# File names decide: *_without_cuda.cpp is built only when CUDA is not; *_sm90.cu is compiled for the
# architecture-specific entries of TILEWEAVE_CUDA_ARCHITECTURES alone.

# Collects the folder's sources into <prefix>_cpp, <prefix>_cu and <prefix>_headers.
function(tileweave_sources prefix folder)
  file(GLOB cpp CONFIGURE_DEPENDS "${folder}/*.cpp")
  file(GLOB cu CONFIGURE_DEPENDS "${folder}/*.cu")
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.h" "${folder}/*.cuh")
  if(TILEWEAVE_WITH_CUDA)
    list(FILTER cpp EXCLUDE REGEX "_without_cuda\\.cpp$")
  else()
    set(cu "")
  endif()
  set(${prefix}_cpp "${cpp}" PARENT_SCOPE)
  set(${prefix}_cu "${cu}" PARENT_SCOPE)
  set(${prefix}_headers "${headers}" PARENT_SCOPE)
endfunction()

# Adds *.cu to a target; *_sm90.cu go through an object library of their own architecture.
function(tileweave_add_cuda_sources target)
  set(portable ${ARGN})
  set(sm90 ${ARGN})
  list(FILTER portable EXCLUDE REGEX "_sm90\\.cu$")
  list(FILTER sm90 INCLUDE REGEX "_sm90\\.cu$")
  target_sources(${target} PRIVATE ${portable})
  if(sm90)
    set(architectures ${TILEWEAVE_CUDA_ARCHITECTURES})
    list(FILTER architectures INCLUDE REGEX "^90a")
    add_library(${target}_sm90 OBJECT ${sm90})
    set_target_properties(${target}_sm90 PROPERTIES CUDA_ARCHITECTURES "${architectures}")
    target_include_directories(${target}_sm90 PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target}_sm90 PRIVATE $<BUILD_INTERFACE:tileweave_library_flags>
                                                 CUDA::cudart_static)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_sm90>)
  endif()
endfunction()

# Turns layer names into the targets that exist for them (with suffix "" or "_cuda").
function(tileweave_layer_targets result suffix)
  get_property(declared GLOBAL PROPERTY TILEWEAVE_DECLARED_LAYERS)
  set(targets "")
  foreach(layer IN LISTS ARGN)
    if(NOT layer IN_LIST declared)
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR} depends on layer '${layer}', which no folder above it declares")
    endif()
    if(TARGET tileweave_${layer}${suffix})
      list(APPEND targets tileweave_${layer}${suffix})
    endif()
  endforeach()
  set(${result} "${targets}" PARENT_SCOPE)
endfunction()

function(tileweave_layer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ONE_TARGET" "NAME" "DEPENDS;CUDA_DEPENDS;LIBRARIES")
  set_property(GLOBAL APPEND PROPERTY TILEWEAVE_DECLARED_LAYERS ${arg_NAME})
  set(target tileweave_${arg_NAME})
  tileweave_sources(own "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT own_cpp AND NOT own_cu AND NOT own_headers)
    return()
  endif()
  tileweave_layer_targets(above "" ${arg_DEPENDS})
  tileweave_layer_targets(above_cuda _cuda ${arg_DEPENDS})
  tileweave_layer_targets(cuda_only "" ${arg_CUDA_DEPENDS})
  tileweave_layer_targets(cuda_only_cuda _cuda ${arg_CUDA_DEPENDS})

  if(own_cpp OR (arg_ONE_TARGET AND own_cu))
    add_library(${target} STATIC ${own_cpp})
    target_link_libraries(${target} PUBLIC ${above}
      PRIVATE $<BUILD_INTERFACE:tileweave_library_flags> $<BUILD_INTERFACE:fmt::fmt-header-only>
              ${arg_LIBRARIES})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${above} ${arg_LIBRARIES})
    set(scope INTERFACE)
  endif()
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                $<INSTALL_INTERFACE:include>)
  tileweave_register(${target} ${arg_NAME})

  if(own_cu AND arg_ONE_TARGET)
    tileweave_add_cuda_sources(${target} ${own_cu})
    target_link_libraries(${target} PUBLIC ${above_cuda} ${cuda_only} ${cuda_only_cuda}
                                           CUDA::cudart_static)
  elseif(own_cu)
    if(TARGET ${target}_cuda)
      message(FATAL_ERROR "target ${target}_cuda exists already: use ONE_TARGET or move the .cu")
    endif()
    add_library(${target}_cuda STATIC)
    tileweave_add_cuda_sources(${target}_cuda ${own_cu})
    target_link_libraries(${target}_cuda
      PUBLIC ${target} ${above_cuda} ${cuda_only} ${cuda_only_cuda} CUDA::cudart_static
      PRIVATE $<BUILD_INTERFACE:tileweave_library_flags>)
    tileweave_register(${target}_cuda ${arg_NAME}_cuda)
  endif()
endfunction()

# Gives a layer's target its public name and remembers it for the umbrella and the installation.
function(tileweave_register target name)
  add_library(tileweave::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY TILEWEAVE_LAYER_TARGETS ${target})
endfunction()

# tileweave::tileweave, the one target most users link: every layer of this build.
function(tileweave_umbrella)
  get_property(layers GLOBAL PROPERTY TILEWEAVE_LAYER_TARGETS)
  add_library(tileweave INTERFACE)
  target_link_libraries(tileweave INTERFACE ${layers})
  target_include_directories(tileweave INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                 $<INSTALL_INTERFACE:include>)
  add_library(tileweave::tileweave ALIAS tileweave)
endfunction()
