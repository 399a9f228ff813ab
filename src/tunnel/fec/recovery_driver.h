#pragma once

// Proactive recovery at the sender: data in flight that is not known to be lost is protected by
// copies and parities, so that the receiver need not wait for loss detection (FUSO, CoFUSO).
//
// Data flow. The session reports all data that it sends (onNewData, onDataSent) and asks for
// datagrams at these points:
//
//     pollTail      the tail of a parity that did not fit one datagram: at once
//     pollSecond    duplicates (DuplicateQueue): after repairs, before new data
//     pollTurn      protection of a short flow that has ended, in that flow's turn among the others
//     pollIdle      protection of all flows of a class, when no new data waits
//
// For pollTurn and pollIdle the policy of the class looks at the paths (RecoveryView) and chooses
// one packet of protection (Protection). It is built here, by a DatagramBuilder, and sent. The peer
// reports what it decodes with RECOVERED frames (onRecovered).
//
// Two rules hold for every policy. Protection is sent only when no new data waits, or in the turn
// of the flow that it protects. And it is sent only on a path whose window is open, except that a
// small flow's protection in its turn has the same priority allowance as its data
// (SendAdmission::isOpenAhead). A policy only decides and keeps no packets.
//
// Parts: ProtectionCursors (what may be protected), FecSender (coding blocks), DuplicateQueue. The
// receiver's side is FecReceiver.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunnel/fec/cursors.h"
#include "tunnel/fec/fec_sender.h"
#include "tunnel/fec/policies.h"
#include "tunnel/queue/flow.h"

namespace braid {

class ProactiveRecovery {
 public:
  /// setPolicies() must be called before anything else.
  explicit ProactiveRecovery(const ProtectionContext& context)
      : context_(context), duplicates_(context_, policies_), blocks_(context_, marks_) {}

  /// Makes the policies that the options name. They replace the previous ones.
  void setPolicies(SecretRandom& random) {
    policies_.set(context_.options, context_.recovery, random);
  }
  const RecoveryPolicies& policies() const { return policies_; }
  /// The peer has said in PARAMS what it keeps.
  void setPeer(const Params& peer);

  // ---- what is sent

  /// The data unit is sent for the first time. True when its flow has now sent all it has and wants
  /// a turn to protect it.
  bool onNewData(UnitRef unit);
  /// A datagram with the data unit is sent, for the first time or as a repair, on
  /// DataUnit::subflow.
  void onDataSent(const DataUnit& unit, Time now);
  /// The peer has decoded the data of the packets named in the frame.
  void onRecovered(const RecoveredFrame& frame, Time now);

  // ---- what leaves; false when there is nothing to send now

  bool pollTail(Datagram& out, Time now) { return blocks_.pollTail(out, now); }
  bool pollSecond(Datagram& out, Time now) { return duplicates_.poll(out, now); }
  bool pollTurn(Flow& flow, Datagram& out, Time now);
  /// `newDataWaits`: sends nothing, and idleAgainAt() is kNever.
  bool pollIdle(bool newDataWaits, Datagram& out, Time now);
  /// A duplicate waits for its path.
  bool hasSecond() const { return !duplicates_.empty(); }
  /// When to call pollIdle() again although nothing is sent or acknowledged, provided that data is
  /// un-ACKed and no new data waits; may be in the past.
  Time idleAgainAt() const { return idleAgainAt_; }

  /// The session ends: releases the data units that it holds to the data tracker.
  void clear() { duplicates_.clear(); }
  /// Coding blocks begun since the session began.
  uint64_t blocks() const { return blocks_.begun(); }

 private:
  /// The span in packets after which the oldest packet is duplicated: half of what the receiver
  /// holds, at least 1.
  static constexpr uint64_t windowOf(const Params& peer) { return (peer.heldSpan + 1) / 2; }

  bool protect(uint8_t recoveryClass, Flow* flow, Datagram& out, Time now);
  bool startBlock(uint8_t recoveryClass, const Flow* flow, const Protection& choice, Datagram& out,
                  Time now);
  RecoveryView look(uint8_t recoveryClass, Flow* flow, Time now);
  void countUnacked(uint8_t recoveryClass, const Flow* flow);
  void askAgain(const RecoveryPolicy& policy, Time now);
  bool sendCopy(uint8_t recoveryClass, const Flow* flow, const Protection& choice, Datagram& out,
                Time now);
  PacketNumber choosePacket(uint8_t recoveryClass, const Flow* flow, const Protection& choice);
  void growMarks();

  ProtectionContext context_;
  RecoveryPolicies policies_;
  std::vector<ProtectionCursors> marks_;  ///< by position of the subflow
  DuplicateQueue duplicates_;
  FecSender blocks_;
  std::vector<RecoveryPath> paths_;  ///< what the policy sees, by position
  Time idleAgainAt_ = kNever;
  /// Maximum number of packets that a flow may be ahead of its oldest missing one before that is
  /// duplicated.
  uint64_t receiveWindow_ = windowOf(Params{});
  bool lastEnded_ = false;  ///< the flow that sent last has ended and takes no turn of its own
};

}  // namespace braid
