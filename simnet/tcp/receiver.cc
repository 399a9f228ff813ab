#include "simnet/tcp/receiver.h"

#include <algorithm>

namespace braid::sim::tcp {

void Receiver::onSegment(Range bytes, bool ce, bool cwr) {
  onEcn(ce, cwr);
  bool hadGap = bytes_.hasGap();
  uint64_t before = bytes_.next();
  bool repeat = bytes_.has(bytes);
  stats_.repeats += repeat;
  stats_.gaps += !repeat && bytes.begin > before;
  bytes_.add(bytes);
  if (bytes_.next() > before) onProgress();
  bool inOrder = bytes_.next() > before && !hadGap;
  if (!inOrder || !options_.delayedAcks || ++waiting_ >= options_.ackEvery)
    return outlet_.acknowledge();
  if (!alarm_.isSet()) alarm_.set(timeline_.now() + options_.ackDelay);
}

void Receiver::onProgress() {
  Time now = timeline_.now();
  stats_.longestStall = std::max(stats_.longestStall, now - stats_.progressAt);
  stats_.progressAt = now;
}

// With RFC 3168, ECE is repeated until the sender says CWR. With DCTCP, each ACK reports the marks
// of exactly the segments that it acknowledges. So when the mark changes, the segments before the
// change are acknowledged at once.
void Receiver::onEcn(bool ce, bool cwr) {
  if (options_.control == Control::kDctcp) {
    if (ce != echo_ && waiting_ > 0) outlet_.acknowledge();
    echo_ = ce;
    return;
  }
  if (cwr) echo_ = false;
  if (ce) echo_ = true;
}

}  // namespace braid::sim::tcp
