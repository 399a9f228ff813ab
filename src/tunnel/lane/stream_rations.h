#pragma once

#include <cstdint>

#include "base/ration.h"

namespace braid {

/// How many streams may begin with a peer. To open one costs the peer a few bytes, and this side a connection of its
/// kernel. What is left is the peer's and not a session's: a new session gives it no more.
///
/// `perSecond`: StreamOptions::newPerSecond, at least 1.
struct StreamRations {
  /// Streams that this side opens; further connections stay packets.
  static constexpr Allowance own(uint32_t perSecond) { return {2 * perSecond, Duration{2s} / perSecond}; }
  /// Those of the peer that this side takes: of a peer that keeps to own() all, also when those that waited for a path
  /// for the repair time (3 s) come at once.
  static constexpr Allowance ofPeer(uint32_t perSecond) { return {4 * perSecond, Duration{1s} / perSecond}; }
  /// Others that are answered by a reset. What is beyond that is not even acknowledged, and comes again.
  static constexpr Allowance refusals(uint32_t perSecond) { return {perSecond, Duration{1s} / perSecond}; }

  Ration opened, taken, refused;
};

}  // namespace braid
