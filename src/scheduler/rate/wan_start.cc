#include "scheduler/rate/wan_start.h"

#include "scheduler/rate/loss_ceiling.h"

namespace braid {

bool WanStart::onRound(const WanRound& round, const WanPath& path, bool used) {
  Duration queue = FullPipe::queueOf(path.base());
  if (used) pipe_.onRound(path.rate());
  // In bursts of a sender that does not fill the window, the first packet of each sees no queue.
  bool high = round.meanRtt() - path.base() >= kMeanQueue * queue;
  bool queued = round.samples >= kSamples && (path.queue() >= queue || high);
  bool lossy = round.packets >= LossCeiling::kLeastLost && round.lost > kLoss * round.sent();
  return queued || lossy || round.marked || pipe_.isFull();
}

}  // namespace braid
