#include "gateway/state/history_recorder.h"

#include <algorithm>
#include <chrono>

namespace braid {

namespace {
double wallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
}  // namespace

void HistoryRecorder::keep(Time now) {
  if (next_ == 0) step_ = now;
  for (size_t left = kPeersAtOnce; left > 0 && next_ < tunnel_.peerCount(); --left)
    history_.add(tunnel_.peerStatus(next_++, now), static_cast<int64_t>(wallSeconds()));
  bool done = next_ >= tunnel_.peerCount();
  if (done) {
    next_ = 0;
    history_.add(refused());
  }
  // The other peers' turns come later, so that packets are carried in between.
  deadline_ = done ? std::max(step_ + History::kStep, now + 1ms) : now + 1ms;
}

RefusedCounts HistoryRecorder::refused() const {
  const DropCounts drops = tunnel_.wholeStatus().drops;
  auto count = [&](Drop cause) { return drops[static_cast<size_t>(cause)]; };
  const GatewayStatus gateway = status_();
  return {wallSeconds(),
          count(Drop::kForeignSource),
          count(Drop::kBetweenPeers),
          count(Drop::kHandshakeSeal),
          gateway.streams.forbidden,
          gateway.drops.sendErrors};
}

void HistoryRecorder::onPortal(const std::string& uplink, const std::string& text) {
  history_.add("portal", uplink, text, wallSeconds());
}

void HistoryRecorder::onEvent(const Event& event) {
  history_.add(event, wallSeconds() - toSeconds(event.ago));
}

}  // namespace braid
