#include "gateway/state/history_recorder.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace braid {

namespace {
double wallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
}  // namespace

void HistoryRecorder::keep(Time now) {
  if (next_ == 0) step_ = now;
  for (size_t left = kPeersAtOnce; left > 0 && next_ < tunnel_.peerCount(); --left) {
    const PeerStatus peer = tunnel_.peerStatus(next_++, now);
    for (const SubflowStatus& s : peer.subflows)
      if (s.state == "active") working_.insert(s.uplink);
    history_.add(peer, static_cast<int64_t>(wallSeconds()));
  }
  bool done = next_ >= tunnel_.peerCount();
  if (done) endStep(now);
  // The other peers' turns come later, so that packets are carried in between.
  deadline_ = done ? std::max(step_ + History::kStep, now + 1ms) : now + 1ms;
}

void HistoryRecorder::endStep(Time now) {
  next_ = 0;
  const GatewayStatus gateway = status_();
  if (!std::exchange(isFirst_, false)) availability_.look(gateway.uplinks, working_, now);
  working_.clear();
  history_.add(refused(gateway));
}

RefusedCounts HistoryRecorder::refused(const GatewayStatus& gateway) const {
  const DropCounts drops = tunnel_.wholeStatus().drops;
  auto count = [&](Drop cause) { return drops[static_cast<size_t>(cause)]; };
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
