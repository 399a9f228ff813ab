// Precompiled for every program of tests (cmake/braid.cmake).
#ifndef BRAID_CMAKE_PCH_TESTS_H
#define BRAID_CMAKE_PCH_TESTS_H

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cmake/pch/standard.h"

#endif
