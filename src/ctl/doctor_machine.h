#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace braid {

/// The files below /proc, /dev and the like, or for tests those of a folder in their place.
class Machine {
 public:
  explicit Machine(std::string root = {}) : root_(std::move(root)) {}

  std::string path(const std::string& file) const { return root_ + file; }
  /// The content without blanks at its end; nullopt: it cannot be read.
  std::optional<std::string> text(const std::string& file) const;
  /// nullopt: it cannot be read, or is no number.
  std::optional<int64_t> number(const std::string& file) const;
  /// A capability set of a process, "CapEff" say; nullopt: there is no such process.
  std::optional<uint64_t> capabilities(const std::string& process, const std::string& set) const;
  /// The users of this process are not those of the machine: a container without privileges.
  bool isUserNamespace() const;

 private:
  std::string root_;
};

}  // namespace braid
