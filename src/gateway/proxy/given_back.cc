#include "gateway/proxy/given_back.h"

namespace braid {

GivenBack::Copy GivenBack::look(const Beginning& of, Time now) {
  auto found = entries_.find(of.ends);
  if (found == entries_.end()) return Copy::kNone;
  Entry& entry = found->second;
  if (entry.sequence != of.sequence || now - entry.at >= kKnown) return Copy::kNone;
  if (entry.isJoined) return Copy::kUseless;
  if (now - entry.at >= kEcho) return entry.isEchoed ? Copy::kAstray : Copy::kRepeated;
  entry.isEchoed = true;
  return Copy::kUseless;
}

void GivenBack::add(const Beginning& of, Time now) {
  Entry& entry = entries_[of.ends];
  const bool isEchoed = entry.isEchoed && entry.sequence == of.sequence;
  entry = {.sequence = of.sequence, .at = now, .isEchoed = isEchoed};
  order_.push_back({now, of.ends});
  while (order_.size() > kMost || now - order_.front().first >= kKnown) {
    auto oldest = entries_.find(order_.front().second);
    if (oldest != entries_.end() && oldest->second.at == order_.front().first)
      entries_.erase(oldest);
    order_.pop_front();
  }
}

void GivenBack::join(const StreamEnds& ends) {
  auto found = entries_.find(ends);
  if (found != entries_.end()) found->second.isJoined = true;
}

}  // namespace braid
