// Precompiled for every target (cmake/braid.cmake): headers of the standard library that most files
// include. A file still includes what it uses; the preset "debug" compiles without this one.
#ifndef BRAID_CMAKE_PCH_STANDARD_H
#define BRAID_CMAKE_PCH_STANDARD_H

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#endif
