#pragma once

// Which packets of one subflow may still be protected. The sent-map says what is in flight; the marks
// remember, for each class of flows, how far protection has looked.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/subflow/sent_packets.h"

namespace braid {

class Subflow;

/// The marks of one subflow. Packet numbers refer to the sent-map of that subflow, which every call is given;
/// sent.next() stands for "none". A packet that can not be copied (coded) any more never can again, so that
/// marks only go up and a search costs each packet once.
class ProtectionMarks {
 public:
  /// Data of that class of flows leaves, neither as a copy nor in a parity.
  void noteData(uint8_t recoveryClass, Time now) { classes_[recoveryClass].lastSent = now; }
  /// When that was last; Time::min(): never.
  Time lastSent(uint8_t recoveryClass) const { return classes_[recoveryClass].lastSent; }

  /// The oldest packet in flight with data of the class that was never copied.
  PacketNumber firstUncopied(const SentPackets& sent, uint8_t recoveryClass);
  /// The oldest one from `from` on that is in no block and may go into one; none is looked for from `end` on.
  PacketNumber firstUncoded(const SentPackets& sent, uint8_t recoveryClass, PacketNumber from = {},
                            PacketNumber end = PacketNumber(UINT64_MAX));
  /// Fills in what a policy may know of the class's un-ACKed data: `uncoded` is counted up to `most`.
  void countUnacked(const SentPackets& sent, RecoveryPath& path, uint8_t recoveryClass, size_t most);

  /// The newest packet in flight with data of the class, among the last few.
  static PacketNumber newestUnacked(const SentPackets& sent, uint8_t recoveryClass);
  /// Whether all data of the packet can be put into a block.
  static bool isCodable(const SentPackets& sent, PacketNumber pn);

 private:
  struct ClassMarks {
    PacketNumber copy{};  ///< no packet below can be copied
    PacketNumber code{};  ///< or coded
    Time lastSent = Time::min();
  };
  std::array<ClassMarks, kMaxRecoveryClasses + 1> classes_{};
};

/// What a recovery policy may know of the subflow, but for its un-ACKed data; `lastSent` as in RecoveryPath.
RecoveryPath recoveryPath(const Subflow& subflow, Time lastSent, Time now);

}  // namespace braid
