# Packages for Debian: `cpack --config build/release/CPackConfig.cmake` (docs/packages.md). What a program needs to run is found out
# by dpkg-shlibdeps; only what no library tells stands here.

# Whoever makes packages has built what goes into them; tests and benchmarks need not be built for it.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fleetfit)
set(CPACK_PACKAGE_VENDOR fleetfit)
set(CPACK_PACKAGE_CONTACT "fleetfit developers <fleetfit@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(same_version "(= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME fleetfit)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "fleetfit-train ${same_version}, nodejs, npm")
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "${PROJECT_DESCRIPTION}
 Measures neural networks on devices and predicts how long they take there,
 and finds the version of a network that is best on each of them.")

# Those whose headers and libraries a program needs that links the modules: what the build installs, less what only it needs.
execute_process(COMMAND "${PROJECT_SOURCE_DIR}/tools/install-packages" --list build
  OUTPUT_VARIABLE build_packages OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" build_packages "${build_packages}")
list(FILTER build_packages INCLUDE REGEX "-dev$|^protobuf-compiler$|^flatbuffers-compiler$")
list(FILTER build_packages EXCLUDE REGEX "^libcli11|^libeigen3|^pybind11|^python3")
list(JOIN build_packages ", " build_packages)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libfleetfit-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${build_packages}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "fleetfit ${same_version}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${PROJECT_DESCRIPTION} (library)
 Headers, static libraries and the CMake package of fleetfit's modules.")

if(TARGET fleetfit-train)
  list(APPEND CPACK_COMPONENTS_ALL train)
  set(CPACK_DEBIAN_TRAIN_PACKAGE_NAME fleetfit-train)
  set(CPACK_DEBIAN_TRAIN_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_TRAIN_PACKAGE_DEPENDS "fleetfit ${same_version}")
  set(CPACK_DEBIAN_TRAIN_PACKAGE_RECOMMENDS "libopenblas0-pthread")
  set(CPACK_DEBIAN_TRAIN_DESCRIPTION "${PROJECT_DESCRIPTION} (training)
 What fleetfit's verbs train and elastify start: the part that needs libtorch.")
endif()

if(TARGET fleetfit_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-fleetfit)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  # A compiled module is good for one minor version of the interpreter.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "fleetfit ${same_version}, python3-numpy, ${FLEETFIT_PYTHON_DEPENDS}")
  # Compiled files of Python come and go with the package.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/cmake/debian/python/postinst;${PROJECT_SOURCE_DIR}/cmake/debian/python/prerm")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "${PROJECT_DESCRIPTION} (Python)
 The Python package fleetfit.")
endif()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" upper)
  install(FILES LICENSE DESTINATION "share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}" RENAME copyright COMPONENT ${component})
endforeach()
include(CPack)
