# Compile options that every target of the project shares, and the two helpers that keep the lists short.
add_library(braid_options INTERFACE)
target_compile_options(braid_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(braid_options INTERFACE -Wno-restrict)  # false alarm on "text" + std::string, GCC bug 105651
endif()
target_include_directories(braid_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tools)
if(BRAID_SANITIZE)
  target_compile_options(braid_options INTERFACE -fsanitize=${BRAID_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(braid_options INTERFACE -fsanitize=${BRAID_SANITIZE})
endif()
if(BRAID_FUZZ)
  target_compile_options(braid_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# braid_library(name dep...): a static library of every .cc beside and below the calling CMakeLists.txt.
function(braid_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC braid_options ${ARGN})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE braid_options ${ARGN})
  endif()
endfunction()

# braid_test(name LABEL label SOURCES file... LIBS dep...): a GoogleTest program, one ctest per TEST.
function(braid_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE braid_options ${ARG_LIBS} GTest::gtest_main GTest::gmock)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False alarms on vector::insert, GCC bug 107852.
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT 300)
endfunction()
