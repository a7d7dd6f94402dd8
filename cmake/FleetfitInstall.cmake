# What `cmake --install` puts where: programs, and the modules as libraries of a CMake package. docs/library.md is for its users.
#
# Components: `programs` (fleetfit, what it needs at run time), `train` (fleetfit-train, which needs libtorch), `library` and `python`.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(FLEETFIT_PACKAGE_FOLDER "${CMAKE_INSTALL_LIBDIR}/cmake/fleetfit")
# Modules of programs, not of the library: libtorch's, the agent's, and HTTP servers.
set(FLEETFIT_NOT_INSTALLED train agent server)
# Packages whose targets are not called PACKAGE::…
set(FLEETFIT_PACKAGE_OF_onnx_proto Protobuf ONNX)
set(FLEETFIT_PACKAGE_OF_flatbuffers::flatbuffers_shared FlatBuffers)
set(FLEETFIT_PACKAGE_OF_SQLite::SQLite3 SQLite3)
set(FLEETFIT_PACKAGE_OF_yaml-cpp yaml-cpp)

# fleetfit_not_for_users(OUT library…)
#   The libraries as a module links them. Who uses the installed module needs no library that is headers alone, and finds one that
#   has no CMake package by its name, wherever it is.
function(fleetfit_not_for_users out)
  set(result "")
  foreach(library IN LISTS ARGN)
    set(type "")
    if(TARGET ${library})
      get_target_property(type ${library} TYPE)
    endif()
    if(IS_ABSOLUTE "${library}")
      cmake_path(GET library FILENAME file)
      list(APPEND result "$<BUILD_INTERFACE:${library}>" "$<INSTALL_INTERFACE:-l:${file}>")
    elseif(type STREQUAL "INTERFACE_LIBRARY" AND NOT library STREQUAL "Threads::Threads")
      list(APPEND result "$<BUILD_INTERFACE:${library}>")
    else()
      list(APPEND result "${library}")
    endif()
  endforeach()
  set(${out} "${result}" PARENT_SCOPE)
endfunction()

# The CMake packages that these libraries come from, without those that are headers alone.
function(fleetfit_packages_of out)
  set(packages "")
  foreach(library IN LISTS ARGN)
    if(NOT TARGET ${library})
      continue()
    endif()
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY" AND NOT library STREQUAL "Threads::Threads")
      continue()
    endif()
    if(DEFINED FLEETFIT_PACKAGE_OF_${library})
      list(APPEND packages ${FLEETFIT_PACKAGE_OF_${library}})
    elseif(library MATCHES "^([^:]+)::")
      list(APPEND packages "${CMAKE_MATCH_1}")
    else()
      message(FATAL_ERROR "cmake/FleetfitInstall.cmake does not know which package ${library} comes from")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES packages)
  set(${out} "${packages}" PARENT_SCOPE)
endfunction()

# fleetfit_install_module(NAME USES module… LIBRARIES target…): fleetfit::NAME for users.
function(fleetfit_install_module name)
  cmake_parse_arguments(arg "" "" "USES;LIBRARIES" ${ARGN})
  if(name IN_LIST FLEETFIT_NOT_INSTALLED)
    return()
  endif()
  set_target_properties(fleetfit_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS fleetfit_${name} EXPORT fleetfit_${name}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT fleetfit_${name} NAMESPACE fleetfit:: FILE fleetfit-${name}.cmake
    DESTINATION "${FLEETFIT_PACKAGE_FOLDER}" COMPONENT library)
  fleetfit_packages_of(packages ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY FLEETFIT_MODULES ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY FLEETFIT_MODULE_TABLE
    "set(_fleetfit_uses_${name} ${arg_USES})\nset(_fleetfit_packages_${name} ${packages})\n")
endfunction()

# The package's own files and the headers; after all modules.
function(fleetfit_install_package)
  get_property(FLEETFIT_MODULES GLOBAL PROPERTY FLEETFIT_MODULES)
  get_property(FLEETFIT_MODULE_TABLE GLOBAL PROPERTY FLEETFIT_MODULE_TABLE)
  set(config "${CMAKE_CURRENT_BINARY_DIR}/fleetfitConfig.cmake")
  set(version "${CMAKE_CURRENT_BINARY_DIR}/fleetfitConfigVersion.cmake")
  configure_package_config_file(cmake/fleetfitConfig.cmake.in "${config}" INSTALL_DESTINATION "${FLEETFIT_PACKAGE_FOLDER}"
    PATH_VARS CMAKE_INSTALL_BINDIR)
  write_basic_package_version_file("${version}" COMPATIBILITY SameMinorVersion)
  install(FILES "${config}" "${version}" DESTINATION "${FLEETFIT_PACKAGE_FOLDER}" COMPONENT library)
  # Programs that drive other runtimes, where the installed program looks for them. What they need themselves is installed by
  # `npm ci` in their folder.
  install(DIRECTORY runtimes/onnxruntime DESTINATION lib/fleetfit/runtimes COMPONENT programs)
  foreach(module IN LISTS FLEETFIT_MODULES)
    install(DIRECTORY "include/fleetfit/${module}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/fleetfit" COMPONENT library)
  endforeach()
endfunction()
