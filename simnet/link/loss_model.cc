#include "simnet/link/loss_model.h"

#include <algorithm>

namespace braid {

void LossModel::setOptions(const LinkOptions& options) {
  loss_ = options.loss;
  bursts_ = options.bursts;
  std::vector<uint64_t> drops = options.dropPackets;
  std::sort(drops.begin(), drops.end());
  if (drops == drops_) return;
  drops_ = std::move(drops);
  restartCount();
}

void LossModel::restartCount() {
  counted_ = 0;
  nextDrop_ = 0;
}

LossModel::Verdict LossModel::verdict() {
  // Bursts and independent loss each draw for every packet, so that an exact drop does not shift
  // the later ones.
  bool isBurst = burst();
  bool isLoss = loss_ > 0 && lossRandom_.chance(loss_);
  if (exact()) return Verdict::kExact;
  if (isBurst) return Verdict::kBurst;
  return isLoss ? Verdict::kLoss : Verdict::kKeep;
}

bool LossModel::exact() {
  while (nextDrop_ < drops_.size() && drops_[nextDrop_] < counted_) ++nextDrop_;
  return nextDrop_ < drops_.size() && drops_[nextDrop_] == counted_;
}

bool LossModel::burst() {
  if (bursts_.goodToBad <= 0 && bursts_.lossGood <= 0) {
    bad_ = false;
    return false;
  }
  if (burstRandom_.chance(bad_ ? bursts_.badToGood : bursts_.goodToBad)) bad_ = !bad_;
  return burstRandom_.chance(bad_ ? bursts_.lossBad : bursts_.lossGood);
}

}  // namespace braid
