#pragma once

// Peers that stand for each other: several concentrators for the same prefixes.
//
// Of the peers of a group, in the order of the configuration, one is in use: packets for prefixes that they share go to
// it. The first one is preferred. When the peer in use has no path that answers, the others are asked (a PING on each
// path), and the first that answers takes over: a standby whose paths have fallen silent unnoticed, or are cut by what
// cut the first one off, is of no use. Before it does, the peer in use gets as long as its own paths need for an answer:
// after a gap of the radio all answer again at the same time, and a change breaks connections (NAT, streams).
//
// A peer before the one in use takes over again when it has been usable for TunnelOptions::returnAfter on end, or
// longer: twice as long after each time that it failed soon afterwards.

#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"
#include "tunnel/options.h"
#include "tunnel/session/event.h"

namespace braid {

class Peer;
class PeerSet;

class PeerGroups {
 public:
  /// At the start the first peer alone may be in use for so long, so that those that are up a moment earlier do not get
  /// connections which move soon. Ours.
  static constexpr Duration kFirstAlone = 1s;
  /// The peer in use is waited for when another one has answered: as long as an answer may take on its slowest path
  /// (PTO), in these bounds. Ours.
  static constexpr Duration kLeastDoubt = 50ms, kMostDoubt = 300ms;
  /// Others are asked again after so long without an answer.
  static constexpr Duration kAskAgain = 250ms;
  /// A peer that fails within so many times the wait of having taken over again has to wait for twice as long, and at most
  /// for so many times `returnAfter`.
  static constexpr int kSoon = 10, kLongestWait = 32;

  /// All must outlive it.
  PeerGroups(const TunnelOptions& options, PeerSet& peers, EventQueue& events)
      : options_(options), peers_(peers), events_(events) {}

  /// The peers are others now, or in other groups. Peers that are no more must still be alive.
  void onPeersChanged(Time now);
  /// A datagram of the peer came, or something happened to its session.
  void onChange(const Peer& peer, Time now);
  void onTimer(Time now);
  Time nextDeadline() const;

 private:
  struct Member {
    Peer* peer = nullptr;
    Time usableSince = kNever;  ///< kNever: it is not
    Duration wait{};            ///< until it may take over again
    Time tookOverAt = kNever;   ///< again, after it had failed
  };
  struct Group {
    std::string name;
    std::vector<Member> members;
    size_t used = 0;
    Time lostAt = kNever;   ///< the peer in use is not usable since; kNever: it is
    Time askedAt = kNever;  ///< the others were asked; kNever: not since lostAt
    size_t answered = 0;    ///< who has answered then, valid with
    Time decideAt = kNever;
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
