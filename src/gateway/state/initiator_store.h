#pragma once

// The file in which a gateway keeps its known initiators: the peers that connected to it. The file
// holds no keys: a reader of it can end the peers' sessions, and nothing more.

#include <string>
#include <string_view>
#include <vector>

#include "inet/addresses.h"
#include "tunnel/peer/restart_notice.h"

namespace braid {

/// A peer's route in a form that is valid in the next process, too: the listening socket is given
/// by its endpoint.
struct KeptRoute {
  Endpoint listen;
  Address local;  ///< unset: the kernel chooses
  Endpoint remote;
  bool operator==(const KeptRoute&) const = default;
};
struct StoredInitiator {
  Pin pin{};
  RestartNotice notice;
  std::vector<KeptRoute> routes;
  bool operator==(const StoredInitiator&) const = default;
};

class InitiatorStore {
 public:
  /// Converts the content of the file. parse() throws std::exception when format() did not write
  /// it.
  static std::vector<StoredInitiator> parse(std::string_view text);
  static std::string format(const std::vector<StoredInitiator>& initiators);

  /// The file may be missing.
  explicit InitiatorStore(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// What save() wrote; empty when the file is missing. Throws std::runtime_error when the file
  /// cannot be read, or was not written by save().
  std::vector<StoredInitiator> load() const;
  /// Replaces the file atomically, unless it holds these initiators already. Returns what went
  /// wrong; empty: nothing.
  std::string save(const std::vector<StoredInitiator>& initiators);

 private:
  std::string path_;
  std::string saved_;  ///< text of the last save()
};

}  // namespace braid
