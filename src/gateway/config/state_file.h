#pragma once

// Small JSON files in which the daemon keeps what the next daemon must know.

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace braid {

/// The file's text, or a little more than its first `most` bytes; empty when there is no file.
/// Does not follow a link. Throws SystemError.
std::string readStateFile(const std::string& path, size_t most);
/// Replaces the file, or the link in its place, atomically, but without fsync, because fsync may
/// delay packets for long. After a power cut the file may hold the old text, or be empty. Returns
/// what went wrong; empty: nothing.
std::string writeStateFile(const std::string& path, const std::string& text, mode_t mode);

/// A whole number in the range of T. json::get() would wrap numbers out of range, and 1e300 would
/// be undefined behaviour. Throws std::exception.
template <typename T>
T wholeOf(const nlohmann::json& j) {
  bool fits = j.is_number_unsigned() ? std::in_range<T>(j.get<uint64_t>())
                                     : j.is_number_integer() && std::in_range<T>(j.get<int64_t>());
  if (!fits) throw std::runtime_error("not a number of that range");
  return j.get<T>();
}

}  // namespace braid
