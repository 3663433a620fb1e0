# The CMakeLists.txt of every folder uses this file: it sets compiler, packages and flags, and has one function per kind
# of target.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "tonari needs GCC 12 or Clang 16; this is GCC ${CMAKE_CXX_COMPILER_VERSION}: "
                      "remove ${CMAKE_BINARY_DIR} and configure with CXX=g++-12")
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(TONARI_CCACHE ccache)
if(TONARI_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache does not keep files that use a precompiled header, unless it is told to ignore __TIME__ and macros of headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${TONARI_CCACHE})
endif()

include(TonariPackages)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(hwloc REQUIRED QUIET IMPORTED_TARGET hwloc)
pkg_check_modules(ucx QUIET IMPORTED_TARGET ucx>=1.13)
if(NOT TARGET PkgConfig::ucx)
  message(STATUS "UCX 1.13 or later is not installed (libucx-dev): tonari is built without network")
endif()

pkg_check_modules(pmix QUIET IMPORTED_TARGET pmix>=4)
if(NOT TARGET PkgConfig::pmix)
  message(STATUS "PMIx 4 or later is not installed (libpmix-dev): tonari is built without joining by launchers")
endif()

# Options that pkg-config and mpicc add for programs that link libtonari.a.
set(TONARI_LINK_PACKAGES "-lspdlog -lfmt -lsodium -llz4 -pthread")

# The build tree has the layout of an installed tree, so programs find each other in the same way in both.
set(TONARI_BIN_DIR ${PROJECT_BINARY_DIR}/bin)
set(TONARI_LIBEXEC_DIR ${PROJECT_BINARY_DIR}/libexec/tonari)

# The flags of this repository's files. Projects that use tonari do not inherit them.
add_library(tonari_flags INTERFACE)
target_compile_features(tonari_flags INTERFACE cxx_std_20)
target_compile_options(tonari_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                              $<$<BOOL:${TONARI_WERROR}>:-Werror>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_compile_options(tonari_flags INTERFACE -march=x86-64-v2)
  # GCC copies and clears short objects with `rep movs` and `rep stos`, which take 20 ns to start on some processors, and
  # do not overlap with the next call. The C library's functions take 4 ns.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(strategy libcall:-1:noalign)
    target_compile_options(tonari_flags INTERFACE
                           $<$<CONFIG:Release,RelWithDebInfo>:-mmemcpy-strategy=${strategy} -mmemset-strategy=${strategy}>)
  endif()
endif()

# A message passes through five source files. Inlining across them saves 12 ns of 68 ns. src/CMakeLists.txt optimises the
# library once, when it is built. So the installed archive holds machine code only, which any compiler links quickly.
option(TONARI_LTO "Optimise the library across its files" OFF)
# Groups of files take half the time to compile. Files that lack an include are found by `make`, which compiles them one
# by one.
option(TONARI_UNITY "Compile files in groups, which takes less time" ON)
option(TONARI_PRECOMPILE "Compile the common headers of the tests once, which takes less time" ON)
if(TONARI_LTO AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(STATUS "TONARI_LTO: only implemented with GCC; the library is not optimised across its files")
  set(TONARI_LTO OFF)
endif()
set(CMAKE_CXX_COMPILE_OPTIONS_IPO -flto=auto -fno-fat-lto-objects)

# Adds the source files of the current folder of src/ to the static and the shared library. They are compiled once for
# both, as position-independent code. Two flags make that code as fast as an executable's. With the first, code reaches
# thread-local variables without a call; they are few, so dlopen() has room for them. With the second, the compiler may
# inline functions although the shared library exports them. SUBFOLDERS names subfolders that belong to the same target.
# The next build finds new files.
function(tonari_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SUBFOLDERS")
  list(TRANSFORM arg_SUBFOLDERS APPEND /*.cpp OUTPUT_VARIABLE patterns)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp ${patterns})
  add_library(tonari_${name} OBJECT ${sources})
  target_include_directories(tonari_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(tonari_${name} PRIVATE -ftls-model=initial-exec -fno-semantic-interposition)
  target_link_libraries(tonari_${name} PRIVATE tonari_flags ${TONARI_PACKAGES})
  set_target_properties(tonari_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                                  INTERPROCEDURAL_OPTIMIZATION ${TONARI_LTO})
  if(TONARI_UNITY AND NOT TONARI_LTO)
    set_target_properties(tonari_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# Adds a program of `SOURCES`, built into `DIRECTORY`, that may include headers of src/. It links the static library.
function(tonari_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DIRECTORY" "SOURCES;PACKAGES")
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE tonari_flags tonari::tonari ${TONARI_PACKAGES} ${arg_PACKAGES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${arg_DIRECTORY})
endfunction()
