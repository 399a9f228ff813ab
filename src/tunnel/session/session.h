#pragma once

// One keyed association with a peer: its keys, its life, and who works for it.
//
// What flows through. Inner packets go in (onInnerPacket) and wait in the PacketLane until the FairRound comes to
// their flow and Outbound puts them into datagrams (pollDatagram); the DataLedger knows each of them until it is
// delivered or given up. Datagrams of the peer go in (onDatagram), are opened here and read by Inbound, which hands
// inner packets to the SessionOwner as PacketReceiver orders them.
//
//     onInnerPacket -> PacketLane -> FairRound -> Outbound -> DatagramBuilder -> KeyRing -> pollDatagram
//     onDatagram -> KeyRing -> Inbound -> Subflow | PacketReceiver | BlockReceiver | Protector -> SessionOwner
//
// PathManager has the subflows that datagrams take; Protector and BlockReceiver are the two ends of proactive
// recovery; ControlFrames keeps what must arrive until it has.
//
// Life. A session begins unheard: its keys come from a handshake, and nothing is known of the peer. The first
// datagram that opens confirms that the peer has the keys. The session is over when the peer has said CLOSE or lied
// about what reached it, or when the keys are used up: its owner drops it. close() says CLOSE on every usable
// subflow. Nothing else leaves after either.
//
// Invariants. No packet number takes effect twice, and nothing takes effect whose seal is bad. While no subflow is
// usable, data waits; after LaneOptions::repairTime nobody waits for it any more and it is dropped.
//
// Calls. Whatever is called (on...) may change what pollDatagram() gives and nextDeadline() says. onTimer() is
// due at nextDeadline().

#include <memory>
#include <optional>
#include <string>

#include "tunnel/lane/data_ledger.h"
#include "tunnel/protect/block_receiver.h"
#include "tunnel/protect/protector.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/inbound.h"
#include "tunnel/session/key_renewal.h"
#include "tunnel/session/outbound.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/peer_events.h"
#include "tunnel/session/session_lanes.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_owner.h"
#include "tunnel/session/session_status.h"
#include "tunnel/subflow/datagram.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/key_ring.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

class Session final {
 public:
  /// `options`, `pool`, `events`, `owner` and `random` must outlive it.
  Session(const SessionSecrets& secrets, KeySchedule::Role role, const SessionOptions& options,
          PacketPool& pool, PeerEvents& events, SessionOwner& owner, SecretRandom& random, Time now);
  ~Session();

  uint32_t id() const { return sealer_.session(); }
  KeySchedule::Role role() const { return keys_.role(); }
  Time start() const { return start_; }
  /// When a datagram of the peer was last opened; the session's start before that.
  Time lastHeard() const { return heardAt_.value_or(start_); }
  /// A datagram of the peer has been opened: it has the keys.
  bool confirmed() const { return heardAt_.has_value(); }
  /// The peer said CLOSE or acknowledged what was never sent, or the keys are used up.
  bool over() const { return over_; }
  /// Over, and nothing is left to say.
  bool isDone() const { return over_ && closesLeft_.value_or(0) == 0; }
  bool anyUsable() const { return paths_.anyUsable(); }
  /// Since when no subflow is usable; kNever when one is.
  Time unusableSince() const { return paths_.unusableSince(); }
  /// Largest inner packet that serves the paths in use, bytes.
  size_t innerMtu() const { return paths_.innerMtu(); }
  /// A path has been searched: innerMtu() is what it carries, and not the least that is taken for granted.
  bool knowsInnerMtu() const { return paths_.knowsInnerMtu(); }
  /// The options have changed.
  void setTunables();
  /// How the session comes to the keys of another handshake.
  KeyRenewal& renewal() { return renewal_; }

  // ---- subflows (initiator)

  /// Starts or reopens the subflow of this name. False when the numbers are used up.
  bool openSubflow(const std::string& name, const std::string& uplink, const Route& route, Time now) {
    return paths_.open(name, uplink, route, now);
  }
  void closeSubflow(const std::string& name, Time now);
  /// How this side and the peer are to use the subflow, see PathDuties::setPreference().
  void setPreference(const std::string& name, const PathPreference& own, const PathPreference& peers,
                     std::shared_ptr<Pacer> ceiling, Time now);

  // ---- what arrives

  /// How a datagram with this header would be opened now; empty: not at all.
  CipherWork opening(const DatagramHeader& header);
  /// Opens the datagram and acts on it. nullopt when it was used, else why not. `opened`: its opening(), asked for a
  /// little earlier, has been done.
  std::optional<Drop> onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn, Packet datagram,
                                 Time now, const CipherWork* opened = nullptr);
  /// Queues an inner packet. nullopt when it was taken.
  std::optional<Drop> onInnerPacket(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable,
                                    Time now, PacketHint hint = {}) {
    return lanes_.packets.enqueue(std::move(packet), key, reliable, ecnCapable, now, hint);
  }
  /// The inner flow, if it has sent packets by this session lately; nullptr: it has not.
  const Flow* flow(const FlowKey& key) const { return lanes_.flows.find(key); }
  /// Its subflows; for what is asked of their paths.
  PathManager& paths() { return paths_; }
  /// Its streams.
  StreamLane& streams() { return lanes_.streams; }
  /// The kernel refused to send on the route. True when a subflow is there.
  bool onSendError(const Route& route, Time now);
  /// A datagram of that size was too large for the route. True when a subflow is there.
  bool onTooBig(const Route& route, size_t size, Time now);
  void onTimer(Time now);

  /// The load test of its paths.
  Measurement& measurement() { return outbound_.measurement(); }

  // ---- what leaves

  /// The next datagram; false when none may leave now.
  bool pollDatagram(Datagram& out, Time now);
  /// Says CLOSE on every usable subflow and sends nothing more.
  void close() { close({CloseFrame::kStops}); }
  Time nextDeadline(Time now) const;
  /// After a poll that gave nothing: before nextDeadline() nothing but an on... call can change what is sent.
  bool isAtRest() const { return outbound_.isAtRest() && paths_.isAtRest(); }
  /// `flows`: how many inner flows to list.
  void fill(SessionStatus& status, Time now, size_t flows = 0) const;
  /// What was thrown away so far; what onDatagram() and onInnerPacket() refused is not in it.
  DropCounts drops() const;
  /// The session ends. The owner gets what has arrived and is held for order, and what may be of use to the peer by
  /// another session, flow by flow in order: packets of TCP that were sent and are not known to have arrived, and
  /// all that wait.
  void handBack(SessionOwner& owner);
  /// The session ends, and whatever is left in it is thrown away: drops() says the last word then.
  void giveUp();

 private:
  void close(const CloseFrame& close);
  void refresh(Time now);
  void clearQueues(Time now);

  const SessionOptions& options_;
  PeerEvents& events_;
  SecretRandom& random_;
  KeyRing keys_;
  DatagramSealer sealer_;
  RecoveryTrace trace_;
  DataLedger ledger_;
  SessionLanes lanes_;
  ControlFrames controls_;
  KeyRenewal renewal_;
  PathManager paths_;
  Protector protector_;
  BlockReceiver receiver_;
  Outbound outbound_;
  Inbound inbound_;

  Time start_;
  std::optional<Time> heardAt_;
  bool over_ = false;
  DropCounts drops_{};                ///< of clearQueues()
  CloseFrame close_;                  ///< what is said then
  std::optional<size_t> closesLeft_;  ///< closing: positions of subflows below it have not said CLOSE yet
};

}  // namespace braid
