#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "simnet/link/link_options.h"

namespace braid {

/// Decides which packets the wire loses: by exact numbers, bursts and independent loss, checked in
/// this order. Each random cause draws from its own generator, so changing one does not shift
/// another.
class LossModel {
 public:
  enum class Verdict { kKeep, kExact, kBurst, kLoss };

  explicit LossModel(Random random) : burstRandom_(random.fork()), lossRandom_(random.fork()) {}

  /// Takes over the options about loss. If the drop list has changed, its count restarts at the
  /// next packet. The burst state stays.
  void setOptions(const LinkOptions& options);
  /// Restarts the count: the next packet is number 1.
  void restartCount();
  /// Counts a packet that reaches the link, even if it is dropped before the wire.
  void count() { ++counted_; }
  /// The fate of the packet that was counted last and is now on the wire.
  Verdict verdict();

 private:
  bool exact();
  bool burst();

  Random burstRandom_;
  Random lossRandom_;
  double loss_ = 0;
  GilbertElliott bursts_;
  bool bad_ = false;
  std::vector<uint64_t> drops_;  // sorted
  size_t nextDrop_ = 0;
  uint64_t counted_ = 0;
};

}  // namespace braid
