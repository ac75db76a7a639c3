# cmake --install: headers, libraries, the command, and a package that find_package(tileweave) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(tileweave_layers GLOBAL PROPERTY TILEWEAVE_LAYER_TARGETS)
install(TARGETS tileweave ${tileweave_layers} EXPORT tileweaveTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/tileweave" DESTINATION include
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
install(EXPORT tileweaveTargets NAMESPACE tileweave::
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tileweave")
if(TARGET tileweave_command)
  install(TARGETS tileweave_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tileweave-config.cmake.in"
  "${PROJECT_BINARY_DIR}/tileweave-config.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tileweave")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tileweave-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tileweave-config.cmake"
              "${PROJECT_BINARY_DIR}/tileweave-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/tileweave-cuda-toolkit.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/tileweave-text-libraries.cmake"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tileweave")
