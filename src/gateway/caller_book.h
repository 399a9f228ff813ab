#pragma once

// The file in which a gateway keeps the peers that came to it, so that it can call them back after a restart
// (tunnel/return_calls.h). Who reads it can end their sessions and do no more: it holds no keys.

#include <string>
#include <string_view>
#include <vector>

#include "inet/endpoint.h"
#include "tunnel/return_calls.h"

namespace braid {

/// A peer's way as it holds for the next process, too: the listening socket by its endpoint.
struct KeptRoute {
  Endpoint listen;
  Address local;  ///< unset: the kernel chooses
  Endpoint remote;
  bool operator==(const KeptRoute&) const = default;
};
struct KeptCaller {
  Pin pin{};
  ReturnCall call;
  std::vector<KeptRoute> routes;
  bool operator==(const KeptCaller&) const = default;
};

class CallerBook {
 public:
  /// What the file holds. parse() throws std::exception when it is none of ours.
  static std::vector<KeptCaller> parse(std::string_view text);
  static std::string format(const std::vector<KeptCaller>& callers);

  /// The file need not be there.
  explicit CallerBook(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// What save() wrote; empty when the file is missing. Throws std::runtime_error when it cannot be read, or is none of
  /// ours.
  std::vector<KeptCaller> load() const;
  /// Writes the file anew, in one step and unless that is what it holds. Gives what went wrong; empty: nothing.
  std::string save(const std::vector<KeptCaller>& callers);

 private:
  std::string path_;
  std::string saved_;  ///< text of the last save()
};

}  // namespace braid
