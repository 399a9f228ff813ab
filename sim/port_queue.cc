#include "sim/port_queue.h"

#include <utility>

#include "inet/ip.h"

namespace braid::sim {

void PortQueue::push(Bytes packet, Time now) {
  ++in_;
  bool kept = true;
  if (discipline_ == Discipline::kRedEcn && red_.hits(size(), emptySince_, now, random_))
    kept = markOrDrop(packet);
  if (discipline_ == Discipline::kDctcp && size() > threshold_ && braid::markCe(ByteSpan(packet)))
    ++marked_;
  if (kept && size() < limit_) return waiting_.push_back(std::move(packet));
  ++dropped_;
  if (!kept || discipline_ != Discipline::kDropRand) return;
  size_t victim = random_.below(size() + 1);
  if (victim == size()) return;
  waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(victim));
  waiting_.push_back(std::move(packet));
}

std::optional<Bytes> PortQueue::pop(Time now) {
  if (waiting_.empty()) return std::nullopt;
  Bytes packet = std::move(waiting_.front());
  waiting_.pop_front();
  if (waiting_.empty()) emptySince_ = now;
  return packet;
}

bool PortQueue::markOrDrop(Bytes& packet) {
  bool capable = braid::markCe(ByteSpan(packet));
  marked_ += capable;
  return capable;
}

}  // namespace braid::sim
