#pragma once

// Proactive recovery at the sender: what has been sent and is not known to be lost is protected by copies and
// parities, so that a loss need not be waited for (FUSO, CoFUSO).
//
// What flows through. The session tells the Protector of all data that leaves (onNewData, onDataSent) and asks it
// for datagrams when their turn has come:
//
//     pollTail      the rest of a parity that did not fit one datagram: at once
//     pollSecond    second sendings of a duplicating policy: after repairs, ahead of new data
//     pollTurn      protection of a short flow that has ended, in that flow's turn among the others
//     pollIdle      protection of all flows of a class, when nothing new waits
//
// In a turn and when idle the policy of the class looks at the paths (RecoveryView) and chooses one packet of
// protection (Protection); it is built here, by a DatagramBuilder, and leaves. What the peer decodes it tells
// with RECOVERED frames (onRecovered).
//
// Two promises are kept for every policy: protection goes when nothing new waits, or in the turn of the flow
// that it is for; and only on a path whose window is open, ahead of which a small flow's may be in its turn as far as
// its data may (Gate::isOpenAhead). A policy decides and keeps no packets.
//
// Parts: ProtectionMarks (what may be protected), BlockSender (coding blocks), SecondSendings. The receiver's
// side is BlockReceiver.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunnel/lane/flow.h"
#include "tunnel/protect/block_sender.h"
#include "tunnel/protect/protection_context.h"
#include "tunnel/protect/protection_marks.h"
#include "tunnel/protect/recovery_policies.h"
#include "tunnel/protect/second_sendings.h"

namespace braid {

class Protector {
 public:
  /// setPolicies() must follow before anything else.
  explicit Protector(const ProtectionContext& context)
      : context_(context), secondSendings_(context_, policies_), blocks_(context_, marks_) {}

  /// Makes the policies that the options name, in place of those there were.
  void setPolicies(SecretRandom& random) { policies_.set(context_.options, context_.recovery, random); }
  const RecoveryPolicies& policies() const { return policies_; }
  /// The peer has said what it keeps.
  void setPeer(const Params& peer);

  // ---- what is sent

  /// The datum's first datagram leaves. True when its flow has now sent all it has and wants a turn to protect
  /// it.
  bool onNewData(const Datum* datum);
  /// A datagram with the datum leaves, for the first time or as a repair; Datum::subflow says where.
  void onDataSent(const Datum& datum, Time now);
  /// The peer has decoded the data of these packets.
  void onRecovered(const RecoveredFrame& frame, Time now);

  // ---- what leaves; false when there is nothing to send now

  bool pollTail(Datagram& out, Time now) { return blocks_.pollTail(out, now); }
  bool pollSecond(Datagram& out, Time now) { return secondSendings_.poll(out, now); }
  bool pollTurn(Flow& flow, Datagram& out, Time now);
  /// `newDataWaits`: then nothing is sent, and nothing is asked for again by time.
  bool pollIdle(bool newDataWaits, Datagram& out, Time now);
  /// A second sending waits for its path.
  bool hasSecond() const { return !secondSendings_.empty(); }
  /// When to ask pollIdle() again although nothing is sent or acknowledged, provided that something is un-ACKed
  /// and nothing new waits; may be past.
  Time idleAgainAt() const { return idleAgainAt_; }

  /// The session ends: gives what it holds back to the ledger.
  void clear() { secondSendings_.clear(); }
  /// Coding blocks begun.
  uint64_t blocks() const { return blocks_.begun(); }

 private:
  /// Half of what the receiver holds, and at least one. Ours.
  static constexpr uint64_t windowOf(const Params& peer) { return (peer.heldSpan + 1) / 2; }

  bool protect(uint8_t recoveryClass, Flow* flow, Datagram& out, Time now);
  bool startBlock(uint8_t recoveryClass, const Flow* flow, const Protection& choice, Datagram& out, Time now);
  RecoveryView look(uint8_t recoveryClass, Flow* flow, Time now);
  void countUnacked(uint8_t recoveryClass, const Flow* flow);
  void askAgain(const RecoveryPolicy& policy, Time now);
  bool sendCopy(uint8_t recoveryClass, const Flow* flow, const Protection& choice, Datagram& out, Time now);
  PacketNumber choosePacket(uint8_t recoveryClass, const Flow* flow, const Protection& choice);
  void growMarks();

  ProtectionContext context_;
  RecoveryPolicies policies_;
  std::vector<ProtectionMarks> marks_;  ///< by position of the subflow; grows with the set
  SecondSendings secondSendings_;
  BlockSender blocks_;
  std::vector<RecoveryPath> paths_;  ///< what the policy sees, by position
  Time idleAgainAt_ = kNever;
  uint64_t receiveWindow_ =
      windowOf(Params{});   ///< packets that a flow may be ahead of the oldest that is missing
  bool lastEnded_ = false;  ///< the flow that sent last has ended and takes no turn of its own
};

}  // namespace braid
