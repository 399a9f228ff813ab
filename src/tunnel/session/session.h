#pragma once

// One keyed association with a peer: its keys, its life cycle, and the objects that do its work.
//
// Data flow. Inner packets come in (onInnerPacket) and wait in the PacketQueues until the
// DrrScheduler chooses their flow and Outbound puts them into datagrams (pollDatagram). The
// DataTracker tracks each of them until it is delivered or given up. The peer's datagrams come in
// (onDatagram), are decrypted here and read by Inbound. Inbound reports inner packets as
// PacketEvents in the order that PacketReceiver establishes.
//
//     onInnerPacket -> PacketQueues -> DrrScheduler -> Outbound -> DatagramBuilder -> KeyRing
//                   -> pollDatagram
//     onDatagram -> KeyRing -> Inbound
//                -> Subflow | PacketReceiver | FecReceiver | ProactiveRecovery -> PacketEvents
//
// PathManager has the subflows that the datagrams use. ProactiveRecovery and FecReceiver are the
// two ends of proactive recovery. ControlFrames keeps the frames that must arrive until they have.
//
// Life. A new session has keys from a handshake, and nothing has been heard from the peer. The
// first datagram that can be decrypted confirms that the peer has the keys. The session is over
// when the peer has sent CLOSE or acknowledged what was never sent, or when the keys are used up:
// then its owner drops it. close() sends CLOSE on every usable subflow. After that, or when the
// session is over, nothing else is sent.
//
// Invariants. No packet number takes effect twice. A datagram that fails authentication has no
// effect. While no subflow is usable, data waits; after patience() it is dropped, because nobody
// waits for it any more.
//
// Calls. Every on... call may change what pollDatagram() returns and what nextDeadline() says.
// onTimer() is due at nextDeadline().

#include <memory>
#include <optional>
#include <string>

#include "tunnel/fec/fec_receiver.h"
#include "tunnel/fec/recovery_driver.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/data_sender.h"
#include "tunnel/session/inbound.h"
#include "tunnel/session/key_renewal.h"
#include "tunnel/session/outbound.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/peer_events.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_status.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/key_ring.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// What the sessions of all peers share. nullptr: there is none, and quotas have no bound.
struct SharedResources {
  MemoryQuota* orderMemory = nullptr;   ///< bytes: receive state of the peers' flows
  MemoryQuota* decodeMemory = nullptr;  ///< bytes: what is kept for decoding
  MemoryQuota* streamMemory = nullptr;  ///< bytes: what is held for the readers of streams
  StreamRegistry* streams = nullptr;    ///< where the driver meets streams; nullptr: no streams
  TraceSink* trace = nullptr;           ///< may be set and cleared at any time
};

/// What a session uses and does not own. All of it must outlive the session.
struct SessionContext {
  PacketPool& pool;
  SecretRandom& random;
  PeerEvents& events;
  PacketEvents& packets;
  StreamRateLimits& rateLimits;
  const SharedResources& shared;
};

class Session final {
 public:
  /// `options` must outlive this object.
  Session(const SessionSecrets& secrets, KeySchedule::Role role, const SessionOptions& options,
          const SessionContext& context, Time now);
  ~Session();

  uint32_t id() const { return sealer_.session(); }
  KeySchedule::Role role() const { return keys_.role(); }
  Time start() const { return start_; }
  /// When a datagram of the peer was last decrypted; before the first one, when the session began.
  Time lastHeard() const { return heardAt_.value_or(start_); }
  /// A datagram of the peer has been decrypted: the peer has the keys.
  bool confirmed() const { return heardAt_.has_value(); }
  /// The peer sent CLOSE or acknowledged what was never sent, or the keys are used up.
  bool over() const { return over_; }
  /// The session is over and has nothing left to send.
  bool isDone() const { return over_ && closesLeft_.value_or(0) == 0; }
  bool anyUsable() const { return paths_.anyUsable(); }
  /// Since when no subflow is usable; kNever when one is.
  Time unusableSince() const { return paths_.unusableSince(); }
  /// How long data waits while no subflow is usable: QueueOptions::repairTime, or as long as an
  /// answer takes on the slowest path if that is longer, at most kLongestPatience. A shorter time
  /// would end before the answer to a probe can arrive.
  Duration patience() const;
  /// Largest inner packet in bytes that all paths in use carry.
  size_t innerMtu() const { return paths_.innerMtu(); }
  /// The MTU search of a path has ended: innerMtu() is what the paths carry, no longer the minimum
  /// that is assumed at first.
  bool knowsInnerMtu() const { return paths_.knowsInnerMtu(); }
  /// The options have changed.
  void setTunables();
  /// The change to the keys of another handshake.
  KeyUpdate& renewal() { return renewal_; }

  // ---- subflows (initiator)

  /// Starts or reopens the subflow of this name. False when all subflow numbers are used.
  bool openSubflow(const std::string& name, const std::string& uplink, const Route& route,
                   Time now) {
    return paths_.open(name, uplink, route, now);
  }
  void closeSubflow(const std::string& name, Time now);
  /// Sets how this side and the peer shall use the subflow, see PathRoles::setPreference().
  void setPreference(const std::string& name, const PathPreference& own,
                     const PathPreference& peers, std::shared_ptr<Pacer> ceiling, Time now);

  // ---- what arrives

  /// Decrypts the datagram and processes it. Returns nullopt when it was used, else why not.
  std::optional<Drop> onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn,
                                 Packet datagram, Time now);
  /// Queues an inner packet. Returns nullopt when it was accepted, else why not.
  std::optional<Drop> onInnerPacket(Packet packet, const FlowKey& key, bool reliable,
                                    bool ecnCapable, Time now, PacketHint hint = {}) {
    return queues_.packets.enqueue(std::move(packet), key, reliable, ecnCapable, now, hint);
  }
  /// The inner flow, if this session still knows it from packets it was given; nullptr: unknown.
  const Flow* flow(const FlowKey& key) const { return queues_.flows.find(key); }
  /// The subflows, for questions about their paths.
  PathManager& paths() { return paths_; }
  SessionStreams& streams() { return queues_.streams; }
  /// The kernel refused to send on the route. True when a subflow uses it.
  bool onSendError(const Route& route, Time now);
  /// A datagram of `size` bytes was too large for the route. True when a subflow uses it.
  bool onTooBig(const Route& route, size_t size, Time now);
  void onTimer(Time now);

  /// The load test of this session's paths.
  LoadTest& loadTest() { return outbound_.loadTest(); }

  // ---- what leaves

  /// The next datagram; false when nothing may be sent now.
  bool pollDatagram(Datagram& out, Time now);
  /// Sends CLOSE on every usable subflow, and nothing more.
  void close() { close({CloseFrame::kStops}); }
  /// As close(), and the session is over.
  void end() { end({CloseFrame::kStops}); }
  Time nextDeadline(Time now) const;
  /// After a poll that returned nothing: until nextDeadline(), only an on... call can change what
  /// is sent.
  bool isAtRest() const { return outbound_.isAtRest() && paths_.isAtRest(); }
  /// Fills in the session's status. `flows`: how many inner flows to list.
  void fill(SessionStatus& status, Time now, size_t flows = 0) const;
  /// Packets dropped until now, by cause, without those that onDatagram() and onInnerPacket()
  /// refused.
  DropCounts drops() const;
  /// The session ends. Delivers what has arrived and is held for order. Returns what another
  /// session could still deliver to the peer, flow by flow in order: TCP packets that were sent and
  /// are not known to have arrived, and all packets that wait.
  void handBack();
  /// The session ends and drops all that is left in it. drops() is final afterwards.
  void giveUp();

 private:
  void close(const CloseFrame& close);
  void end(const CloseFrame& close);
  void refresh(Time now);
  void clearQueues(Time now);

  const SessionOptions& options_;
  PeerEvents& events_;
  PacketEvents& packets_;
  SecretRandom& random_;
  KeyRing keys_;
  DatagramSealer sealer_;
  RecoveryTrace trace_;
  DataTracker dataTracker_;
  SessionQueues queues_;
  ControlFrames controls_;
  KeyUpdate renewal_;
  PathManager paths_;
  ProactiveRecovery proactiveRecovery_;
  FecReceiver receiver_;
  DataSender data_;
  Outbound outbound_;
  Inbound inbound_;

  ProtocolVersion version_;  ///< that this session speaks
  Time start_;
  std::optional<Time> heardAt_;
  bool over_ = false;
  DropCounts drops_{};  ///< of clearQueues()
  CloseFrame close_;    ///< the frame that close() sends
  /// While closing: subflows at positions below it have not sent CLOSE yet.
  std::optional<size_t> closesLeft_;
};

}  // namespace braid
