# Finds Oniguruma (regular expressions) and utf8proc (Unicode), which have no CMake package of their
# own in every distribution; used by the build and by the installed package.
foreach(library oniguruma utf8proc)
  string(REPLACE oniguruma onig library_file ${library})
  string(TOUPPER ${library} prefix)
  find_path(${prefix}_INCLUDE_DIR ${library}.h)
  find_library(${prefix}_LIBRARY ${library_file})
  mark_as_advanced(${prefix}_INCLUDE_DIR ${prefix}_LIBRARY)
  if(NOT ${prefix}_INCLUDE_DIR OR NOT ${prefix}_LIBRARY)
    message(FATAL_ERROR "tileweave: ${library} was not found; its Debian package is "
                        "lib${library_file}-dev")
  endif()
  if(NOT TARGET tileweave_${library})
    add_library(tileweave_${library} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(tileweave_${library} PROPERTIES
      IMPORTED_LOCATION "${${prefix}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${${prefix}_INCLUDE_DIR}")
  endif()
endforeach()
# Oniguruma also exports the POSIX names (regcomp, regexec, ...). The C library comes before it in the
# search order, so a program that uses both gets the C library's; AddressSanitizer, which passes
# regexec on to the C library, would hang on what Oniguruma's regcomp made.
set_property(TARGET tileweave_oniguruma PROPERTY
  INTERFACE_LINK_OPTIONS "LINKER:--push-state,--no-as-needed,-lc,--pop-state")
unset(library_file)
unset(prefix)
