#pragma once

#include "scheduler/rate/wan_path.h"
#include "scheduler/rate/wan_target.h"

namespace braid {

/// Tells `wan` whose a standing queue is. Too much queued for two rounds is a reason to look (wan_look.h): a
/// queue that goes with this window was ours, one that stays in three looks in turn is somebody else's. Copa
/// (Arun and Balakrishnan, NSDI 2018, section 2.2) concludes that from a queue that was not nearly empty
/// within five RTTs.
class WanForeignQueue {
 public:
  /// Too much is queued when it is more than so many times the target of the highest rate of late (who gives
  /// way gets a higher target, and would never notice),
  static constexpr double kHighQueue = 1.5;
  /// more than so many times the target of now, or so many seconds if that is less,
  static constexpr double kHighOwn = 1.2;
  static constexpr double kHighMost = 15e-3;
  /// and more than so many datagrams take at the rate that arrives now, which are no queue: the base RTT was
  /// seen at a higher rate, when a packet took less time to send. At most WanTarget::kMost.
  static constexpr double kPackets = 1.5;
  /// After so many such rounds in turn it is time to look.
  static constexpr int kHighRounds = 2;
  /// A look found somebody's queue when more is left than so many times the target of the highest rate of
  /// late, and than kPackets.
  static constexpr double kLeft = 1.25;
  /// So many such looks in turn make it certain.
  static constexpr int kLooks = 3;

  enum class Owner : uint8_t { kSelf, kDoubtful, kOther };

  /// `datagram`: bytes of a full one.
  explicit WanForeignQueue(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}

  /// A round that used its window has ended, and is in `path`. True: it is time to look.
  bool onRound(const WanPath& path, const WanTarget& target);
  /// A round did not use its window, or a look begins: high rounds are counted anew.
  void restart() { high_ = 0; }
  /// The round that a look was for has ended. kDoubtful: look again.
  Owner onLook(const WanPath& path, const WanTarget& target);

 private:
  double least(const WanPath& path) const;

  double datagram_;
  int high_ = 0;     // rounds in turn with too much queued
  int foreign_ = 0;  // looks in turn that found somebody's queue
};

}  // namespace braid
