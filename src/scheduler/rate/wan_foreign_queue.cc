#include "scheduler/rate/wan_foreign_queue.h"

#include <algorithm>

namespace braid {

double WanForeignQueue::least(const WanPath& path) const {
  return std::min(kPackets * datagram_ / path.arrived(), toSeconds(WanTarget::kMost));
}

bool WanForeignQueue::onRound(const WanPath& path, const WanTarget& target) {
  double own = kHighOwn * toSeconds(target.at(path.rate()));
  double high = std::max(kHighQueue * target.secondsAt(path.highest()), std::min(own, kHighMost));
  high_ = toSeconds(path.queue()) > std::max(high, least(path)) ? high_ + 1 : 0;
  return high_ >= kHighRounds;
}

WanForeignQueue::Owner WanForeignQueue::onLook(const WanPath& path, const WanTarget& target) {
  double left = std::max(kLeft * target.secondsAt(path.highest()), least(path));
  foreign_ = toSeconds(path.queue()) > left ? foreign_ + 1 : 0;
  if (foreign_ >= kLooks) return Owner::kOther;
  return foreign_ > 0 ? Owner::kDoubtful : Owner::kSelf;
}

}  // namespace braid
