// What an ACK says of a subflow: deliveries, losses, the delivery rate, the RTT.

#include <algorithm>
#include <utility>

#include "tunnel/subflow/subflow.h"

namespace braid {

namespace {
/// One sample raises the smoothed RTT by no more than this, or four times it, would: a machine that was
/// suspended sees its own sleep in it, and must not wait for half a minute afterwards. A path that has really
/// slowed down says so in every sample. Ours.
constexpr Duration kPlausibleRtt = 1s;
}  // namespace

void Subflow::onAck(const AckFrame& ack, bool samePath, Time now) {
  uint64_t largest = ack.ranges[0].last;
  if (largest >= sent_.next()) return;
  sample_ = AckSample{};
  sample_.inFlight = inFlight_;
  Time largestSentAt{};
  bool newLargest = false;
  if (sent_.contains(largest)) {
    const SentPacket& p = sent_.at(largest);
    newLargest = p.state == SentPacket::State::kInFlight || p.state == SentPacket::State::kLost;
    largestSentAt = p.sentAt;
  }
  // Only what the previous ACK did not say already.
  size_t old = 0;
  for (size_t i = 0; i < ack.count; ++i) {
    auto [first, last] = ack.ranges[i];
    while (old < lastAck_.count && lastAck_.ranges[old].first > last) ++old;
    for (size_t k = old; k < lastAck_.count && lastAck_.ranges[k].last >= first; ++k) {
      const AckFrame::Range& known = lastAck_.ranges[k];
      if (known.last < last) processAckRange(known.last + 1, last, now);
      if (known.first <= first) {
        first = last + 1;
        break;
      }
      last = known.first - 1;
    }
    if (first <= last) processAckRange(first, last, now);
  }
  lastAck_ = ack;
  if (!samePath) sample_.deliveryRate = 0;  // earlier than others: not the path's rate
  if (sample_.bytes == 0) return;
  sample_.marks = ecn_.onAck(largest, ack.ecn, now);

  lastProgress_ = now;
  ptoCount_ = 0;
  if (newLargest && samePath) {
    Duration sample = now - largestSentAt;
    if (rtt_.hasSample()) sample = std::min(sample, std::max<Duration>(4 * rtt_.smoothed(), kPlausibleRtt));
    rtt_.onSample(sample, std::min<Duration>(ack.delay, kMaxAckDelay), now);
    sample_.rtt = rtt_.latest();
  }
  if (state_ == State::kSuspect && !peerRefuses_) setState(State::kActive, now);
  detectLosses(now);
  sample_.now = now;
  sample_.srtt = rtt_.smoothed();
  sample_.minRtt = rtt_.windowedMin();
  sample_.delivered = delivered_;
  controller_->onAck(sample_);
  if (sample_.marks > 0) controller_->onMarks(sample_.marks, largestSentAt, now);
  // Only now: what the silence lost, and how slow it was, tells nothing of the path that is back.
  if (std::exchange(startAnew_, false)) controller_->reset(now);
  pacer_.setRate(controller_->pacingRate());
  trim(now);
}

void Subflow::processAckRange(uint64_t first, uint64_t last, Time now) {
  if (last < sent_.first()) return;
  for (uint64_t pn = std::max(first, sent_.first()); pn <= last; ++pn) acknowledge(pn, sent_.at(pn), now);
}

void Subflow::acknowledge(uint64_t pn, SentPacket& p, Time now) {
  bool inFlight = p.state == SentPacket::State::kInFlight;
  if (!inFlight && p.state != SentPacket::State::kLost) return;
  loss_.onAcked(pn);
  if (p.ect) ecn_.onAcked(pn);
  bool isProtected = false;
  for (size_t i = 0; i < p.dataCount; ++i) {
    isProtected |= p.data[i]->copied || p.data[i]->coded;
    ledger_.onDelivered(p.data[i], inFlight && !p.moved);
    ledger_.forget(p.data[i]);
  }
  if (inFlight && isProtected && p.role == SentPacket::Role::kOrdinary) ++counts_.useless;
  p.dataCount = 0;
  if (p.hasControl) owner_.onControlFate(*this, pn, true);
  if (inFlight) {
    inFlight_ -= p.bytes;
    lossEstimate_.onAcked();
  } else {
    ++counts_.spurious;
    if (p.countedLost) lossEstimate_.onSpurious();
    loss_.onSpurious();
    if (!p.mtuProbe) controller_->onSpuriousLoss(p.sentAt, now);
  }
  delivered_ += p.bytes;
  deliveredAt_ = now;
  sample_.bytes += p.bytes;
  if (p.sentAt >= sample_.largestSentAt) {
    sample_.largestSentAt = p.sentAt;
    sampleRate(p, now);
  }
  if (p.mtuProbe) {
    mtu_.onProbeAcked(p.bytes, now);
  } else {
    mtu_.onAcked(p.bytes);
  }
  p.state = SentPacket::State::kAcked;
}

// draft-cheng-iccrg-delivery-rate-estimation section 3.3
void Subflow::sampleRate(const SentPacket& p, Time now) {
  Duration sending = p.sentAt - p.firstSentAt;
  Duration acking = now - p.deliveredAt;
  firstSentAt_ = p.sentAt;
  double interval = toSeconds(std::max(sending, acking));
  sample_.appLimited = p.appLimited;
  sample_.priorDelivered = p.delivered;
  sample_.deliveryRate = interval > 0 ? static_cast<double>(delivered_ - p.delivered) / interval : 0;
  if (sample_.deliveryRate > 0) deliveryRate_ = sample_.deliveryRate;
}

void Subflow::detectLosses(Time now) {
  LossSample lost;
  lost.now = now;
  lost.inFlight = inFlight_;
  uint64_t before = 0;
  Time runStart{};
  bool haveRun = false;
  Duration longestRun{};
  loss_.detect(sent_, rtt_.latest(), rtt_.smoothed(), rtt_.windowedMin(), now,
               [&](uint64_t pn, SentPacket& p) {
                 p.state = SentPacket::State::kLost;
                 inFlight_ -= p.bytes;
                 noteLoss(pn, p, now);
                 bool ofEcnTest = p.ect && ecn_.onLost(pn, now);
                 loseData(p, now);
                 if (p.hasControl) owner_.onControlFate(*this, pn, false);
                 if (p.mtuProbe) return mtu_.onProbeLost(p.bytes, now);
                 ++counts_.lostPackets;
                 if (ofEcnTest) return;
                 if (tellsOfMtu(p)) mtu_.onLost(p.bytes);
                 lost.bytes += p.bytes;
                 ++lost.packets;
                 lost.largestSentAt = p.sentAt;
                 if (!haveRun || pn != before + 1) runStart = p.sentAt;
                 haveRun = true;
                 before = pn;
                 longestRun = std::max(longestRun, p.sentAt - runStart);
               });
  if (lost.bytes == 0) return;
  lost.persistent = longestRun > 3 * pto();  // RFC 9002 section 7.6.1
  controller_->onLoss(lost);
  pacer_.setRate(controller_->pacingRate());
}

// What a dead path lost says nothing about sizes. But a lone path with sparse traffic falls silent for every
// packet that is too large, so a few count each time.
bool Subflow::tellsOfMtu(const SentPacket& p) {
  if (p.sentAt >= activeSince_) return true;
  return p.bytes > MtuDiscovery::kMinDatagram && silentLosses_++ < kSilentLosses;
}

// Lost packets are remembered for three PTO, in case their ACK is only late.
void Subflow::trim(Time now) {
  Duration keep = 3 * pto();
  while (!sent_.empty()) {
    SentPacket& p = sent_.at(sent_.first());
    if (p.state == SentPacket::State::kInFlight) break;
    bool crowded = sent_.next() - sent_.first() > SentPackets::kMaxSpan / 2;
    if (p.state == SentPacket::State::kLost && !crowded && now - p.sentAt < keep) break;
    for (size_t i = 0; i < p.dataCount; ++i) ledger_.forget(p.data[i]);
    sent_.popFront();
  }
}

}  // namespace braid
