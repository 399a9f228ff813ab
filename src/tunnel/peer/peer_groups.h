#pragma once

// Groups of peers that replace each other: several concentrators with the same prefixes.
//
// One peer of a group is in use: packets for the shared prefixes are sent to it. The first one in
// the order of the configuration is preferred. When the peer in use has no path that answers, the
// other peers are asked (a PING on each path), and the first one that answers takes over. They are
// asked because a standby's paths may have fallen silent unnoticed, or may be cut by the same
// failure. Before the change, the peer in use gets as much time as its own paths need for an
// answer: after a radio gap all peers answer again at the same time, and a change breaks
// connections (NAT, streams).
//
// A peer that comes before the one in use takes over again when it has been usable for
// TunnelOptions::returnAfter without a break. That time doubles each time the peer fails soon after
// it has taken over.

#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"
#include "tunnel/api/options.h"
#include "tunnel/session/event.h"

namespace braid {

class Peer;
class PeerSet;

class PeerGroups {
 public:
  /// For this time after the start only the first peer may be in use, so that a peer that comes up
  /// a moment earlier does not get connections that would soon have to move.
  static constexpr Duration kFirstAlone = 1s;
  /// When another peer has answered, the peer in use is waited for as long as an answer may take on
  /// its slowest path (PTO), but at least and at most these times.
  static constexpr Duration kLeastDoubt = 50ms, kMostDoubt = 300ms;
  /// The other peers are asked again after this time without an answer.
  static constexpr Duration kAskAgain = 250ms;
  /// A peer that fails within kSoon times its waiting time after it took over again must wait twice
  /// as long the next time, but at most kLongestWait times `returnAfter`.
  static constexpr int kSoon = 10, kLongestWait = 32;

  /// All arguments must outlive this object.
  PeerGroups(const TunnelOptions& options, PeerSet& peers, EventQueue& events)
      : options_(options), peers_(peers), events_(events) {}

  /// The set of peers or their groups have changed. Peers that were removed must still exist.
  void onPeersChanged(Time now);
  /// A datagram of the peer arrived, or something happened to its session.
  void onChange(const Peer& peer, Time now);
  void onTimer(Time now);
  Time nextDeadline() const;

 private:
  struct Member {
    Peer* peer = nullptr;
    Time usableSince = kNever;  ///< kNever: it is not usable
    Duration wait{};            ///< how long it must be usable before it takes over again
    Time tookOverAt = kNever;   ///< when it took over again after a failure; kNever: it did not
  };
  struct Group {
    std::string name;
    std::vector<Member> members;
    size_t used = 0;
    Time lostAt = kNever;    ///< since when the peer in use is not usable; kNever: it is usable
    Time askedAt = kNever;   ///< when the others were asked; kNever: not since lostAt
    size_t answered = 0;     ///< the member that has answered; valid while decideAt is not kNever
    Time decideAt = kNever;  ///< when that member takes over; kNever: no one has answered
  };

  void update(Group& group, Time now);
  void ask(Group& group, Time now);
  Duration doubt(Peer& used);
  void listen(Group& group, Time now);
  void use(Group& group, size_t member, bool lost, Time now);
  void comeBack(Group& group, Time now);
  Time returnAt(const Group& group) const;
  Time deadline(const Group& group) const;

  const TunnelOptions& options_;
  PeerSet& peers_;
  EventQueue& events_;
  std::vector<Group> groups_;
};

}  // namespace braid
