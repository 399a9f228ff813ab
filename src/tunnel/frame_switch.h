#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "base/time.h"
#include "inet/frame.h"

namespace braid {

class Peer;

/// A learning bridge's table (IEEE 802.1D): which peer a MAC address was last seen behind. A frame to an
/// address that is not in it goes to all peers.
class FrameSwitch {
 public:
  /// Addresses that are remembered; further ones are reached by flooding. Ours.
  static constexpr size_t kMaxMacs = 4096;
  /// An address not seen for so long is forgotten (IEEE 802.1D: 300 s).
  static constexpr Duration kMacAge = 300s;
  /// Pause between searches of a full table for old addresses: made-up ones must not cost a search each.
  /// Ours.
  static constexpr Duration kMacSweep = 1s;

  /// A frame from this address came from the peer. Group addresses are no one's and are not learnt.
  void learn(const MacAddress& mac, Peer& peer, Time now);
  /// A frame from this address came from the device: its host may have moved here.
  void forget(const MacAddress& mac) { macs_.erase(mac); }
  /// Forgets what lies behind peers of which `isGone` says so.
  void forgetPeers(const std::function<bool(const Peer&)>& isGone);
  /// The peer behind which the frame's destination was seen of late; nullptr: the frame is for all.
  Peer* peerFor(const Frame& frame, Time now) const;

 private:
  struct Entry {
    Peer* peer;
    Time seen;
  };
  std::map<MacAddress, Entry> macs_;
  Time nextSweep_ = Time::min();
};

}  // namespace braid
