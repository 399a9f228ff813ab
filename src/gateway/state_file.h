#pragma once

// Small files of JSON in which the daemon keeps what the next one must know.

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace braid {

/// The file's text, or a little more than its first `most` bytes; empty when there is no file. Throws SystemError.
std::string readStateFile(const std::string& path, size_t most);
/// Writes the file anew, in one step, but without fsync, which may hold packets up for long: after a power cut it may be
/// the old one, or empty. Gives what went wrong; empty: nothing.
std::string writeStateFile(const std::string& path, const std::string& text, mode_t mode);

/// A whole number of that range. get() would wrap others, and do anything with 1e300. Throws std::exception.
template <typename T>
T wholeOf(const nlohmann::json& j) {
  bool fits = j.is_number_unsigned() ? std::in_range<T>(j.get<uint64_t>())
                                     : j.is_number_integer() && std::in_range<T>(j.get<int64_t>());
  if (!fits) throw std::runtime_error("not a number of that range");
  return j.get<T>();
}

}  // namespace braid
