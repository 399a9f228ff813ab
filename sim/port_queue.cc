#include "sim/port_queue.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "inet/ecn.h"

namespace braid::sim {

Discipline disciplineOf(const std::string& name) {
  if (name == "droptail") return Discipline::kDropTail;
  if (name == "droprand") return Discipline::kDropRand;
  if (name == "red-ecn") return Discipline::kRedEcn;
  if (name == "dctcp") return Discipline::kDctcp;
  throw std::runtime_error("no queue discipline " + name);
}

void PortQueue::push(Bytes packet, Time now) {
  ++in_;
  bool kept = true;
  if (discipline_ == Discipline::kRedEcn && redHits(now)) kept = markOrDrop(packet);
  if (discipline_ == Discipline::kDctcp && size() > threshold_ && braid::markCe(ByteSpan(packet))) ++marked_;
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

// RED's section 4: the average decays as if packets had left while the queue was empty; between the
// thresholds the hits are spread evenly.
bool PortQueue::redHits(Time now) {
  if (waiting_.empty()) average_ *= std::pow(1 - kRedWeight, (now - emptySince_) / packetTime_);
  average_ += kRedWeight * (static_cast<double>(size()) - average_);
  if (average_ < kRedMin) {
    sinceHit_ = 0;
    return false;
  }
  double share = (average_ - kRedMin) / (kRedMax - kRedMin);
  double p = kRedMost * share;
  if (average_ >= kRedMax) p = kRedMost + (1 - kRedMost) * (average_ - kRedMax) / kRedMax;
  ++sinceHit_;
  double spread = p * sinceHit_ < 1 ? p / (1 - p * sinceHit_) : 1;
  if (!random_.chance(spread)) return false;
  sinceHit_ = 0;
  return true;
}

bool PortQueue::markOrDrop(Bytes& packet) {
  bool capable = braid::markCe(ByteSpan(packet));
  marked_ += capable;
  return capable;
}

}  // namespace braid::sim
