# One function for each kind of target, so that every target of a kind is built alike.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(FLEETFIT_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined")

find_program(CCACHE ccache)
if(CCACHE)
  # What ccache asks for where headers are precompiled; and what one checkout has compiled, another need not compile again.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                                      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 "${CCACHE}")
endif()

add_library(fleetfit_flags INTERFACE)
# Options structs are filled by designated initializers that leave defaults alone, so missing fields are no mistake.
target_compile_options(fleetfit_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                                -Wno-missing-field-initializers -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # g++ 12 and 13 find overruns in their own std::vector and std::string once they have inlined them.
  target_compile_options(fleetfit_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # clang warns of what libstdc++ itself uses in std::stable_sort.
  target_compile_options(fleetfit_flags INTERFACE -Wno-deprecated-declarations)
endif()
# What ccache asks for where headers are precompiled.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(FLEETFIT_PRECOMPILED_FLAGS "SHELL:-Xclang -fno-pch-timestamp")
else()
  set(FLEETFIT_PRECOMPILED_FLAGS -fpch-preprocess)
endif()
# The fuzzers follow which branches of the modules an input takes; these ones no fuzzer reaches, so they are compiled without.
set(FLEETFIT_NOT_FUZZED agent app fit report search store study)
if(FLEETFIT_SANITIZE)
  add_compile_options(-fsanitize=${FLEETFIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FLEETFIT_SANITIZE})
endif()

# Headers that nearly every file includes, compiled once for all modules that are compiled alike: that takes a third off the whole build.
# A build with FLEETFIT_PRECOMPILE=OFF shows includes that a file has forgotten.
option(FLEETFIT_PRECOMPILE "Compile common headers once" ON)
set(FLEETFIT_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <numeric> <optional> <set> <span> <string>
                            <string_view> <utility> <vector> <fmt/format.h> <tl/expected.hpp>)

# fleetfit_precompile(TARGET [JSON | GLUE]): has the target use the common headers, as they were compiled for all of its kind; JSON and GLUE
# have nlohmann/json.hpp among them, which costs a quarter of a second for each file that does not need it. Where the fuzzers follow some
# modules and not others, each module has its own, and so has train with libtorch's options.
function(fleetfit_precompile target)
  set(common ${FLEETFIT_COMMON_HEADERS})
  if(ARGN)
    list(APPEND common <nlohmann/json.hpp>)
  endif()
  target_compile_options(${target} PRIVATE "${FLEETFIT_PRECOMPILED_FLAGS}")
  if(FLEETFIT_FUZZERS OR target STREQUAL "fleetfit_train")
    target_precompile_headers(${target} PRIVATE ${common})
    return()
  endif()
  string(TOLOWER "fleetfit_headers_${ARGN}" headers)
  if(NOT TARGET ${headers})
    find_package(fmt REQUIRED)
    find_package(nlohmann_json REQUIRED)
    add_library(${headers} OBJECT "${PROJECT_SOURCE_DIR}/cmake/headers.cc")
    target_link_libraries(${headers} PRIVATE fleetfit_flags fmt::fmt nlohmann_json::nlohmann_json)
    target_compile_options(${headers} PRIVATE $<$<STREQUAL:${ARGN},GLUE>:-O1> "${FLEETFIT_PRECOMPILED_FLAGS}")
    target_precompile_headers(${headers} PRIVATE ${common})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# fleetfit_compile_together(TARGET [ALONE file…]): some files of the target at a time, so that headers are read and templates compiled
# once for all of them: modules with large headers build twice as fast. Names in unnamed namespaces must differ then; files that would rather
# keep theirs are compiled ALONE, and so are those that a small program wants without the libraries of others, as the agent does: a linker
# takes all of an object or nothing. Presets that look at single files (`dev`, `asan`) do without.
option(FLEETFIT_UNITY "Compile several files of a module at once" ON)
function(fleetfit_compile_together target)
  cmake_parse_arguments(arg "" "" "ALONE" ${ARGN})
  if(FLEETFIT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    # The compiler takes the files for headers, in which hidden members of unnamed types would be a mistake.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# fleetfit_vectorize(file…)
#   Loops become vector instructions only where traps and errno need not be kept as the standard wants.
function(fleetfit_vectorize)
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS "-ffp-contract=fast;-fno-math-errno;-fno-trapping-math"
    SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON)  # which are compiled without these options
endfunction()

# fleetfit_module(NAME SOURCES file… [USES module…] [LIBRARIES third-party target…] [JSON | GLUE])
#   One folder of src/ as the library fleetfit_NAME. What it USES is visible to its users, its LIBRARIES are not. JSON: most of its files
#   read or write it. GLUE: they do, and what takes time is in the modules below; here the compiler does, so that it optimizes little.
function(fleetfit_module name)
  cmake_parse_arguments(arg "JSON;GLUE" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_library(fleetfit_${name} STATIC ${arg_SOURCES})
  target_include_directories(fleetfit_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_features(fleetfit_${name} PUBLIC cxx_std_20)
  fleetfit_install_module(${name} USES ${arg_USES} LIBRARIES ${arg_LIBRARIES})
  if(FLEETFIT_FUZZERS AND NOT name IN_LIST FLEETFIT_NOT_FUZZED)
    target_compile_options(fleetfit_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  list(TRANSFORM arg_USES PREPEND fleetfit_)
  fleetfit_not_for_users(libraries fleetfit_flags ${arg_LIBRARIES})
  target_link_libraries(fleetfit_${name} PUBLIC ${arg_USES} PRIVATE ${libraries})
  list(LENGTH arg_SOURCES files)
  if(arg_GLUE)
    target_compile_options(fleetfit_${name} PRIVATE -O1)
    set(kind GLUE)
  elseif(arg_JSON)
    set(kind JSON)
  endif()
  if(FLEETFIT_PRECOMPILE AND files GREATER 1)
    fleetfit_precompile(fleetfit_${name} ${kind})
  endif()
endfunction()

# fleetfit_program(NAME SOURCES file… USES module… [LIBRARIES target…])
function(fleetfit_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  list(TRANSFORM arg_USES PREPEND fleetfit_)
  target_link_libraries(${name} PRIVATE fleetfit_flags ${arg_USES} ${arg_LIBRARIES})
endfunction()

# GoogleTest's headers, compiled once for all test programs.
function(fleetfit_test_headers)
  if(TARGET fleetfit_test_headers)
    return()
  endif()
  add_executable(fleetfit_test_headers "${PROJECT_SOURCE_DIR}/tests/headers.cc")
  target_link_libraries(fleetfit_test_headers PRIVATE fleetfit_flags GTest::gmock GTest::gtest_main)
  target_compile_options(fleetfit_test_headers PRIVATE -O0 "${FLEETFIT_PRECOMPILED_FLAGS}")
  target_precompile_headers(fleetfit_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  # The one file that knows where the sources are: the others are compiled alike in all checkouts.
  add_library(fleetfit_test_places OBJECT "${PROJECT_SOURCE_DIR}/tests/source_dir.cc")
  target_compile_definitions(fleetfit_test_places PRIVATE FLEETFIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_include_directories(fleetfit_test_places PRIVATE "${PROJECT_SOURCE_DIR}")
endfunction()

# fleetfit_test(NAME SOURCES file… USES module… [LIBRARIES target…] [NIGHTLY] [POSTGRES])
#   A GoogleTest program; each of its cases is a test of ctest, but under sanitizers. NIGHTLY: only with FLEETFIT_NIGHTLY.
#   POSTGRES: its cases with "postgres" in their names are run together, beside a server that tools/with-postgres starts for them.
#   A test sees the private headers of src/, so that a module's inner parts can be tested alone.
function(fleetfit_test name)
  cmake_parse_arguments(arg "NIGHTLY;POSTGRES" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  fleetfit_program(${name} SOURCES ${arg_SOURCES} USES ${arg_USES} LIBRARIES GTest::gmock GTest::gtest_main ${arg_LIBRARIES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE -O0 "${FLEETFIT_PRECOMPILED_FLAGS}")  # takes half as long to compile, and tests do little themselves
  fleetfit_test_headers()
  target_link_libraries(${name} PRIVATE fleetfit_test_places)
  target_precompile_headers(${name} REUSE_FROM fleetfit_test_headers)
  set(labels everyday)
  if(arg_NIGHTLY)
    set(labels nightly)
  endif()
  if(arg_NIGHTLY AND NOT FLEETFIT_NIGHTLY)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  elseif(FLEETFIT_SANITIZE)
    # A sanitized program takes long to start: all of its cases in one process.
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1200 LABELS ${labels})
  else()
    set(alone "*")
    if(arg_POSTGRES)
      set(alone "-*postgres*:*Postgres*")
    endif()
    gtest_discover_tests(${name} TEST_FILTER "${alone}" DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS ${labels})
  endif()
  if(arg_POSTGRES AND (NOT FLEETFIT_SANITIZE OR FLEETFIT_NIGHTLY))
    add_test(NAME ${name}.postgres
      COMMAND "${PROJECT_SOURCE_DIR}/tools/with-postgres" $<TARGET_FILE:${name}> "--gtest_filter=*postgres*:*Postgres*")
    set_tests_properties(${name}.postgres PROPERTIES TIMEOUT 600 LABELS ${labels} SKIP_RETURN_CODE 77)
  endif()
endfunction()

# fleetfit_fuzzer(NAME SOURCES file… USES module… CORPUS folder)
#   A libFuzzer program (preset asan); the everyday test runs its corpus and then mutates it for a few seconds.
function(fleetfit_fuzzer name)
  cmake_parse_arguments(arg "" "CORPUS" "SOURCES;USES" ${ARGN})
  fleetfit_program(${name} SOURCES ${arg_SOURCES} USES ${arg_USES} LIBRARIES -fsanitize=fuzzer)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME fuzz.${name} COMMAND "${PROJECT_SOURCE_DIR}/fuzz/run" $<TARGET_FILE:${name}> "${arg_CORPUS}" 5)
endfunction()
