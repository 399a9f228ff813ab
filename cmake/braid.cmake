# Compile options that every target of the project shares, and the two helpers that keep the lists short.
add_library(braid_options INTERFACE)
target_compile_options(braid_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough)
if(BRAID_WERROR)
  target_compile_options(braid_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(braid_options INTERFACE -Wno-restrict)  # false alarm on "text" + std::string, GCC bug 105651
  target_link_options(braid_options INTERFACE -Wno-stringop-overflow)  # false alarms of link-time optimization
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Two neighbours of a small struct, written one by one and then moved by one wide load, make the processor wait until
  # both are written. GCC 12 and later make such loads wherever a packet or a frame is handed on.
  target_compile_options(braid_options INTERFACE -fno-tree-slp-vectorize)
endif()
# A release meets strangers: what compiler and libraries can check at run time, they do. Sanitizers look closer, and
# see less with these.
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT BRAID_SANITIZE)
  set(level 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(level 2)
  endif()
  target_compile_options(braid_options INTERFACE -fstack-protector-strong -fstack-clash-protection
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level} -D_GLIBCXX_ASSERTIONS)
  target_link_options(braid_options INTERFACE LINKER:-z,relro,-z,now)
  # Return addresses are signed on ARM64. Intel's counterpart (-fcf-protection) is left out: a program has it only if all
  # of its objects do, and Debian's start files and the static libraries here do not; it costs 2 % of the instructions.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-mbranch-protection=pac-ret BRAID_HAS_SIGNED_RETURNS)
  if(BRAID_HAS_SIGNED_RETURNS)
    target_compile_options(braid_options INTERFACE -mbranch-protection=pac-ret)
  endif()
  check_cxx_compiler_flag(-ftrivial-auto-var-init=zero BRAID_HAS_ZERO_INITIALISATION)
endif()
target_include_directories(braid_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tools)
if(BRAID_SANITIZE)
  target_compile_options(braid_options INTERFACE -fsanitize=${BRAID_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(braid_options INTERFACE -fsanitize=${BRAID_SANITIZE})
endif()
# The sans-I/O core and what carries it through virtual time. With BRAID_CORE_OPTIMIZED these rooms are optimised in a
# build that is not: tests and the demo spend their time in them, and a compiler takes up to twice as long when it
# optimises.
set(BRAID_CORE base inet coding scheduler ackshim tunnel host linkmodel simnet)
if(BRAID_FUZZ)
  # Counters for llvm-cov, too: the programs that hunt are those whose coverage has a floor (tests/fuzz/floors.yaml).
  set(coverage -fprofile-instr-generate=/dev/null)  # unless LLVM_PROFILE_FILE names a file
  target_compile_options(braid_options INTERFACE -fsanitize=fuzzer-no-link ${coverage} -fcoverage-mapping)
  target_link_options(braid_options INTERFACE ${coverage})
endif()

# braid_pch(target kind): with BRAID_PCH, the target starts from a precompiled header. A compiler takes one only with the
# options it was made with, so each kind of target has its own: "core" (sanitizer builds optimise it), "library" and
# "program" hold the standard library, "tests" GoogleTest, too.
function(braid_pch target kind)
  if(NOT BRAID_PCH)
    return()
  endif()
  set(owner braid_pch_${kind})
  if(NOT TARGET ${owner})
    set(files ${PROJECT_SOURCE_DIR}/cmake/pch)
    if(kind MATCHES "core|library")
      add_library(${owner} OBJECT ${files}/owner.cc)
    else()
      add_executable(${owner} ${files}/owner.cc)
    endif()
    target_link_libraries(${owner} PRIVATE braid_options)
    if(BRAID_CORE_OPTIMIZED AND kind STREQUAL core)
      target_compile_options(${owner} PRIVATE -O1)
    endif()
    if(kind STREQUAL tests)
      target_link_libraries(${owner} PRIVATE GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)
      target_precompile_headers(${owner} PRIVATE ${files}/tests.h)
    else()
      target_precompile_headers(${owner} PRIVATE ${files}/standard.h)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# braid_unity(target): with BRAID_UNITY (every preset but "debug"), up to eight files of a folder are compiled as one,
# because the headers and templates that they share cost more than the files do. So the names that a file keeps to
# itself must differ from those of its folder; a test file has a namespace of its own, `namespace braid::codel_test {`.
# The preset "debug" compiles each file alone.
function(braid_unity target)
  if(NOT BRAID_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    string(REPLACE / _ folder ${folder})
    list(APPEND files_${folder} ${source})
    list(LENGTH files_${folder} count)
    math(EXPR batch "(${count} - 1) / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # takes a file of ours for a header
  endif()
endfunction()

# braid_library(name dep...): a static library of every .cc beside and below the calling CMakeLists.txt. A folder with a
# CMakeLists.txt of its own is not part of it.
function(braid_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  file(GLOB others ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(other ${others})
    get_filename_component(folder ${other} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    braid_unity(${name})
    target_link_libraries(${name} PUBLIC braid_options ${ARGN})
    string(REPLACE braid_ "" room ${name})
    if(BRAID_CORE_OPTIMIZED AND room IN_LIST BRAID_CORE)
      target_compile_options(${name} PRIVATE -O1)
      braid_pch(${name} core)
    else()
      braid_pch(${name} library)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE braid_options ${ARGN})
  endif()
endfunction()

# braid_small(target [file...]): a release of the target, whose code waits for people and files, is optimised for size;
# these files of it, which packets pass, for speed. No variable there holds what was on the stack before. The packet path
# does without that: it costs 5 % of its instructions.
function(braid_small target)
  if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT BRAID_SANITIZE)
    target_compile_options(${target} PRIVATE -Os)
    if(BRAID_HAS_ZERO_INITIALISATION)
      target_compile_options(${target} PRIVATE -ftrivial-auto-var-init=zero)
    endif()
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O2)
  endif()
endfunction()

# The tests come in two halves, so that nothing is built or run twice by scripts/test. BRAID_TESTS says which one
# a build has:
#   fast  unit tests, fuzz replays, rules of the house, and virtual time without its long sweeps: what the sanitizers
#         look at. The programs are built on demand only.
#   slow  what needs speed: the programs end to end, and the long sweeps in virtual time.
#   all   both.
#   none  neither: the programs alone, and nothing is needed that only tests need.
#   demo  the programs and the link emulator, for scripts/demo.
set(BRAID_FAST_TESTS OFF)
set(BRAID_SLOW_TESTS OFF)
if(BRAID_TESTS MATCHES "^(fast|all)$")
  set(BRAID_FAST_TESTS ON)
endif()
if(BRAID_TESTS MATCHES "^(slow|all)$")
  set(BRAID_SLOW_TESTS ON)
endif()

# Optimization at link time compiles a library once more for each program that has it. In a build with tests only what
# carries packets gets it, and what measures that; all else takes the object code that the libraries have beside.
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT BRAID_TESTS MATCHES "^(none|demo)$")
  set(CMAKE_CXX_COMPILE_OPTIONS_IPO -flto=auto -ffat-lto-objects)
  set(BRAID_FAT_OBJECTS ON)
endif()
function(braid_plain_link name)
  if(BRAID_FAT_OBJECTS)
    set_target_properties(${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
    target_link_options(${name} PRIVATE -fno-lto)
  endif()
endfunction()

# braid_program(name file... [OPTIMIZED] LIBS dep...): a program that a sanitizer build makes only when it is asked for.
# OPTIMIZED: at link time, too.
function(braid_program name)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
  braid_pch(${name} program)
  if(NOT ARG_OPTIMIZED)
    braid_plain_link(${name})
  endif()
  if(BRAID_FAST_TESTS AND NOT BRAID_SLOW_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

add_custom_target(unit_tests)  # what ctest -L unit runs

# braid_test(name LABEL label SOURCES file... LIBS dep... [SHARDS n] [LONG filter LONG_SOURCES file...]): a GoogleTest
# program as one ctest, or as n of them that run at the same time; starting a process for each TEST would cost more
# than most tests do. A failure names its TEST in the output; one TEST by hand: bin/NAME --gtest_filter=SUITE.TEST
# The tests that LONG matches, in LONG_SOURCES, are slow, all others fast.
function(braid_test name)
  cmake_parse_arguments(ARG "" "LABEL;SHARDS;LONG" "SOURCES;LONG_SOURCES;LIBS" ${ARGN})
  set(suffix "")
  set(arguments --gtest_brief=1)
  if(NOT BRAID_FAST_TESTS)
    if(NOT ARG_LONG)
      return()
    endif()
    list(FILTER ARG_SOURCES EXCLUDE REGEX "_test\\.cc$")
    set(suffix _long)
    list(APPEND arguments --gtest_filter=${ARG_LONG})
  elseif(NOT BRAID_SLOW_TESTS AND ARG_LONG AND NOT BRAID_LONG_TESTS)
    list(APPEND arguments --gtest_filter=-${ARG_LONG})
  endif()
  add_executable(${name} ${ARG_SOURCES} ${ARG_LONG_SOURCES})
  braid_unity(${name})
  braid_plain_link(${name})
  braid_pch(${name} tests)
  target_link_libraries(${name} PRIVATE braid_options ${ARG_LIBS} GTest::gtest_main GTest::gmock)
  if(ARG_LABEL STREQUAL unit)
    add_dependencies(unit_tests ${name})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False alarms on vector::insert, GCC bug 107852.
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name}${suffix})
    if(ARG_SHARDS GREATER 1)
      string(APPEND test .${shard}of${ARG_SHARDS})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name} ${arguments})
    set_tests_properties(${test} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT 1800
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    if(CMAKE_CROSSCOMPILING_EMULATOR)  # tests of what an emulator does not do leave that out
      set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT BRAID_EMULATED=1)
    endif()
  endforeach()
endfunction()
