#pragma once

// What the parts of protection share: the session's objects that they read and send with, and the
// cursors.
//
// The cursors say which packets of one subflow may still be protected. The sent-map says what is in
// flight. The cursors remember, for each class of flows, how far protection has searched it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/fec/policies.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/trace.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/sent_map.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// The objects of the session that protection uses. All of them outlive protection.
struct ProtectionContext {
  const ProtectOptions& options;
  const RecoveryOptions& recovery;
  SubflowSet& subflows;
  DataTracker& dataTracker;
  PacketPool& pool;
  DatagramSealer& sealer;
  const RecoveryTrace& trace;
};

/// How long the peer's answer may take to protection that is sent now on subflow `on` for packets
/// of subflow `of`. It is at most the time after which loss detection on `of` would declare a loss
/// (RFC 9002 section 6.1.2), so that a slow path does not delay repairs.
inline Duration answerTime(const Subflow& of, const Subflow& on) {
  return std::min(of.path().rtt().smoothed(), on.path().rtt().smoothed()) * 9 / 8;
}

/// Sends the datagram, which holds copies of data from packet `pn` of subflow `of`.
inline bool sendCopies(const ProtectionContext& context, DatagramBuilder& build, Subflow& of,
                       PacketNumber pn, Datagram& out, Time now) {
  Subflow& on = build.subflow();
  for (UnitRef unit : build.data()) context.dataTracker.onCopied(unit, now + answerTime(of, on));
  build.addAck(now);
  on.sender().tally().onCopySent(build.used());
  context.trace.note({.kind = TraceEvent::Kind::kCopySent,
                      .time = now,
                      .subflow = of.id(),
                      .on = on.id(),
                      .pn = pn,
                      .onPn = build.packetNumber()});
  return build.finish(context.sealer, out, now);
}

class Subflow;

/// The cursors of one subflow. Packet numbers refer to the sent-map of that subflow, which every
/// call is given; sent.next() means "none". A packet that can no longer be copied (coded) never can
/// be again. So the cursors only move forward, and a search visits each packet once.
class ProtectionCursors {
 public:
  /// Data of that class of flows is sent, neither as a copy nor in a parity.
  void noteData(uint8_t recoveryClass, Time now) { classes_[recoveryClass].lastSent = now; }
  /// When noteData() was last called for the class; Time::min(): never.
  Time lastSent(uint8_t recoveryClass) const { return classes_[recoveryClass].lastSent; }

  /// The oldest packet in flight that has data of the class which was never copied.
  PacketNumber firstUncopied(const SentPackets& sent, uint8_t recoveryClass);
  /// The oldest packet from `from` on, and before `end`, that is in no block and may be put into
  /// one.
  PacketNumber firstUncoded(const SentPackets& sent, uint8_t recoveryClass, PacketNumber from = {},
                            PacketNumber end = PacketNumber(UINT64_MAX));
  /// Fills in what a policy may know of the class's un-ACKed data. `uncoded` is counted up to
  /// `most`.
  void countUnacked(const SentPackets& sent, RecoveryPath& path, uint8_t recoveryClass,
                    size_t most);

  /// The newest packet in flight with data of the class, among the last kNewestSearch packets.
  static PacketNumber newestUnacked(const SentPackets& sent, uint8_t recoveryClass);
  /// Whether all data of the packet may be put into a block.
  static bool isCodable(const SentPackets& sent, PacketNumber pn);

 private:
  struct ClassMarks {
    PacketNumber copy{};  ///< no packet below it can be copied
    PacketNumber code{};  ///< no packet below it can be coded
    Time lastSent = Time::min();
  };
  std::array<ClassMarks, kMaxRecoveryClasses + 1> classes_{};
};

/// What a recovery policy may know of the subflow, except its un-ACKed data. `lastSent`: as in
/// RecoveryPath.
RecoveryPath recoveryPath(const Subflow& subflow, Time lastSent, Time now);

/// Inner packets that are to be sent twice, whatever becomes of the first transmission: those of a
/// duplicating policy, and the packet that keeps a flow's full receive window from moving. A
/// duplicate waits for its path as the first transmission did, but delays nothing else. A packet
/// that has been delivered, lost or copied meanwhile is not duplicated.
class DuplicateQueue {
 public:
  /// Maximum number of packets that wait; beyond it the oldest is dropped.
  static constexpr size_t kMost = 1024;

  /// Both arguments must outlive this object.
  DuplicateQueue(const ProtectionContext& context, const RecoveryPolicies& policies)
      : context_(context), policies_(policies) {}
  ~DuplicateQueue() { clear(); }
  DuplicateQueue(const DuplicateQueue&) = delete;
  DuplicateQueue& operator=(const DuplicateQueue&) = delete;

  /// Adds the data unit, which has been sent once.
  void add(UnitRef unit);
  bool empty() const { return waiting_.empty(); }
  /// The next duplicate that is still wanted; false when there is none, or its path is not open.
  bool poll(Datagram& out, Time now);
  /// Drops all waiting duplicates.
  void clear();

 private:
  bool isWanted(const DataUnit& unit, Time now) const;
  void dropFirst();
  /// Whether there is a path for the duplicate: one of another uplink than that of the first
  /// transmission; if there is none, another path of the same uplink. `open`: the path with the
  /// lowest RTT that is open now.
  bool findPath(const DataUnit& unit, Subflow*& open, Time now) const;

  const ProtectionContext& context_;
  const RecoveryPolicies& policies_;
  Ring<UnitRef> waiting_;
};

}  // namespace braid
