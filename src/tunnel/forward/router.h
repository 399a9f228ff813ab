#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/containers.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "inet/flow_key.h"
#include "inet/frame.h"
#include "tunnel/api/options.h"

namespace braid {

class Peer;

/// Finds the peer behind an inner IP address by the configured prefixes. It also knows the networks
/// on this side, which no wider prefix of a peer overrides.
class IpRouter {
 public:
  void clear();
  /// Adds a network on this side. A prefix that was added before keeps its owner.
  void addLocal(const Prefix& network) { prefixes_.insert(network, kLocal); }
  /// Adds the peer's prefixes. `peer` must exist until clear(). A prefix that was added before
  /// keeps its owner.
  void add(Peer& peer);
  /// The peer with the longest prefix that contains the address; nullptr: there is none, or the
  /// address is on this side. If several peers of a group have that prefix, the one in use.
  Peer* peerFor(const Address& address) const;
  /// As peerFor() of the flow's destination, except that a TCP connection stays with the peer of
  /// the group that has carried it, while that peer answers.
  Peer* peerFor(const FlowKey& flow) const;
  /// Whether the peer is one of those with the longest prefix that contains the address.
  bool owns(const Peer& peer, const Address& address) const;
  bool isLocal(const Address& address) const { return prefixes_.find(address) == kLocal; }

 private:
  static constexpr size_t kLocal = SIZE_MAX;
  using Owners = std::vector<Peer*>;  ///< several are of one group, the preferred one first
  const Owners* ownersOf(const Address& address) const;

  std::vector<Owners> owners_;
  PrefixTable prefixes_;             ///< to positions in owners_, or kLocal
  std::map<Prefix, size_t> shared_;  ///< prefixes of peers in groups, to the same positions
};

/// The bridge of a TAP gateway (IEEE 802.1D, 802.1Q). Its ports are the device and the peers. It
/// decides which frames cross, and learns behind which port each MAC address is. It protects the
/// sites against each other:
///
/// - An address stays at its port. It may move to another port when no frame has come from it for
///   BridgeOptions::macAge, or when the peer of its port is down. It may always move to the
///   device's port, because the operator decides which hosts are on this side. It may also move
///   back to the port from which it moved last: a peer that took over the address of a silent host
///   loses it with that host's next frame.
/// - Flooded frames are rate-limited per port.
/// - No port can push the addresses of other ports out of the table.
class LearningBridge {
 public:
  /// Maximum number of addresses that are remembered; frames to further ones are flooded. A port
  /// has an equal share of the table, and also what the others do not use.
  static constexpr size_t kMaxMacs = 4096;

  /// `options` must outlive this object. `isUp` says whether a peer is up.
  LearningBridge(const BridgeOptions& options, std::function<bool(const Peer&)> isUp);

  /// Whether frames of this kind cross the bridge.
  bool carries(const Frame& frame) const;
  /// A frame from this MAC address came from the peer, or from the device (nullptr). False: the
  /// address belongs to another port, and the frame must be dropped.
  bool admit(const MacAddress& mac, Peer* from, Time now);
  /// Forgets the addresses behind all peers for which `isGone` is true.
  void forgetPeers(const std::function<bool(const Peer&)>& isGone);

  struct Way {
    bool known = false;    ///< false: the frame must be flooded
    Peer* peer = nullptr;  ///< nullptr: the device
  };
  /// The port behind which the frame's destination is.
  Way wayTo(const Frame& frame, Time now) const;
  /// The peer behind which the address was seen last, however long ago; nullptr: the device, or
  /// nowhere.
  Peer* peerBehind(const MacAddress& mac) const;
  /// Whether the peer (nullptr: the device) may flood one more frame.
  bool mayFlood(Peer* from, Time now);

 private:
  struct Port;
  struct Entry {
    MacAddress mac{};
    Port* port = nullptr;
    Port* before = nullptr;  ///< the port from which it moved, if it may move back there
    Time seen{};
    ListLink<Entry> link{};
  };
  struct Port {
    Peer* peer = nullptr;
    size_t count = 0;
    IntrusiveList<Entry, &Entry::link> entries{};  ///< the longest silent one first
    TokenBucket floods{};
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
  std::map<Peer*, Port> ports_;  ///< ports that have been seen; nullptr: the device
  std::map<MacAddress, Entry> macs_;
};

}  // namespace braid
