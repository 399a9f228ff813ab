#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "simnet/link/link_options.h"

namespace braid {

/// Decides which packets the wire loses: exact numbers, bursts, independent loss, asked in this order. Each
/// cause draws from its own generator, so changing one does not shift another.
class LossModel {
 public:
  enum class Verdict { kKeep, kExact, kBurst, kLoss };

  explicit LossModel(Random random) : burstRandom_(random.fork()), lossRandom_(random.fork()) {}

  /// Takes what concerns loss; a changed drop list counts from the next packet. The burst state stays.
  void setOptions(const LinkOptions& options);
  /// Counts drop numbers from the next packet.
  void restartCount();
  /// Counts a packet that reaches the link, whether or not it gets as far as the wire.
  void count() { ++counted_; }
  /// Fate of the packet counted last, now on the wire.
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
