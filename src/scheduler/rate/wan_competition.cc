#include "scheduler/rate/wan_competition.h"

#include <algorithm>

#include "scheduler/rate/loss_ceiling.h"

namespace braid {

void WanCompetition::setShare(double share) {
  share_ = share;
  cubic_.setShare(share);
}

void WanCompetition::begin(double window, const WanPath& path) {
  cubic_ = Cubic(datagram_, initial_);
  cubic_.setShare(share_);
  cubic_.resume(window, path.srtt());
  longest_ = path.queue();
  lookRounds_ = lookIn_ = kLookRounds;
}

void WanCompetition::onLoss(const LossSample& loss, const WanRound& round, const WanPath& path,
                            double window) {
  bool full = toSeconds(path.srtt() - path.base()) >= kFullQueue * toSeconds(longest_);
  double usual = path.loss() * window / static_cast<double>(datagram_);
  double single =
      path.loss() > LossCeiling::kDoubtful / 2 ? 1 : 0;  // says nothing where some are always lost
  bool many = static_cast<double>(round.packets) > kUsualLoss * usual + single;
  if (loss.persistent || (full && many)) cubic_.onLoss(loss);
}

bool WanCompetition::isLookDue(Duration queue) {
  if (--lookIn_ > 0) return false;
  lookIn_ = lookRounds_ = std::min(2 * lookRounds_, kMostLookRounds);
  before_ = queue;
  return true;
}

}  // namespace braid
