# Cross-building for arm64 with Debian's compiler and the libraries that tools/cross-arm64 has unpacked.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(FLEETFIT_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot" CACHE PATH "Where tools/cross-arm64 has put the libraries")
get_filename_component(sysroot "${FLEETFIT_SYSROOT}" ABSOLUTE)
# Not CMAKE_SYSROOT: the compiler would then look there for its own headers.
set(CMAKE_FIND_ROOT_PATH "${sysroot}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig:${sysroot}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${sysroot}")

# Functions that nothing calls are left out of the program (--gc-sections).
set(CMAKE_CXX_FLAGS_INIT "-ffunction-sections -fdata-sections -idirafter ${sysroot}/usr/include -idirafter ${sysroot}/usr/include/aarch64-linux-gnu")
foreach(kind EXE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT
    "-L${sysroot}/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,${sysroot}/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,${sysroot}/lib/aarch64-linux-gnu")
endforeach()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FLEETFIT_SYSROOT)
