#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/time.h"

namespace braid {

/// What new-data scheduling may know of a subflow.
struct PathView {
  Duration srtt{};
  Duration rttvar{};
  uint64_t window = 0;    ///< bytes
  uint64_t inFlight = 0;  ///< bytes
  double rate = 0;        ///< estimated delivery rate, bytes per second; 0 when unknown
  bool open = false;      ///< usable, the window has room for a datagram and the pacer lets it go now
  bool usable = false;    ///< validated and not suspect; may be closed for now by window or pacer
};

/// Chooses the subflow for the next datagram of new data. One policy a file.
class PathScheduler {
 public:
  virtual ~PathScheduler() = default;
  /// Index of the path to send `bytes` on now, with `queued` bytes waiting behind it. nullopt: better wait
  /// for a path that is closed now.
  virtual std::optional<size_t> pick(std::span<const PathView> paths, uint64_t bytes, uint64_t queued) = 0;
};

/// Makes a scheduler by its configuration name ("minrtt", "ecf"); nullptr for an unknown name.
std::unique_ptr<PathScheduler> makePathScheduler(std::string_view name);

}  // namespace braid
