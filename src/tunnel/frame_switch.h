#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "base/intrusive_list.h"
#include "base/ration.h"
#include "base/time.h"
#include "inet/frame.h"
#include "tunnel/options.h"

namespace braid {

class Peer;

/// The bridge of a TAP gateway (IEEE 802.1D, 802.1Q), whose ports are the device and the peers: which frames cross it,
/// and behind which port a MAC address is. It guards the sites against each other:
///
/// - An address stays where it was heard of. It moves when it has been silent there for BridgeOptions::macAge, or
///   when its peer is down. The device's word holds at once: who is on this side is who the operator let in. And
///   where an address was before it moves back to once it is heard of there: who took it from a host that was
///   silent loses it with that host's next frame.
/// - Frames for all are let through at a bounded rate of each port.
/// - No port can push the others' addresses out of the table.
class FrameSwitch {
 public:
  /// Addresses that are remembered; further ones are reached by flooding. A port has its equal share, and what the
  /// others leave. Ours.
  static constexpr size_t kMaxMacs = 4096;

  /// `options` must outlive this. `isUp` says whether a peer is there.
  FrameSwitch(const BridgeOptions& options, std::function<bool(const Peer&)> isUp);

  /// The frame is of a kind that crosses the bridge.
  bool carries(const Frame& frame) const;
  /// A frame from this address came from the peer, or with nullptr from the device. False: the address is behind
  /// another port, and the frame must not be believed.
  bool admit(const MacAddress& mac, Peer* from, Time now);
  /// Forgets what lies behind peers of which `isGone` says so.
  void forgetPeers(const std::function<bool(const Peer&)>& isGone);

  struct Way {
    bool known = false;    ///< false: the frame is for all
    Peer* peer = nullptr;  ///< nullptr: the device
  };
  /// The port behind which the frame's destination is.
  Way wayTo(const Frame& frame, Time now) const;
  /// The peer behind which the address was last heard of, however long ago; nullptr: the device, or nowhere.
  Peer* peerBehind(const MacAddress& mac) const;
  /// Whether the peer (nullptr: the device) may send one more frame for all.
  bool mayFlood(Peer* from, Time now);

 private:
  struct Port;
  struct Entry {
    MacAddress mac{};
    Port* port = nullptr;
    Port* before = nullptr;  ///< where it was when it moved, if it may move back there
    Time seen{};
    ListLink<Entry> link{};
  };
  struct Port {
    Peer* peer = nullptr;
    size_t count = 0;
    IntrusiveList<Entry, &Entry::link> entries{};  ///< the one that was silent for longest first
    Ration floods{};
  };

  Port& portOf(Peer* peer);
  bool isOld(const Entry& entry, Time now) const { return now - entry.seen >= options_.macAge; }
  bool mayMove(const Entry& entry, const Port& to, Time now) const;
  bool makeRoom(const Port& port, Time now);
  void put(Entry& entry, Port& port, Time now);
  void take(Entry& entry);
  void forget(Entry& entry);

  const BridgeOptions& options_;
  std::function<bool(const Peer&)> isUp_;
  std::map<Peer*, Port> ports_;  ///< those that were heard of; nullptr: the device
  std::map<MacAddress, Entry> macs_;
};

}  // namespace braid
