// What an ACK says of a subflow: deliveries, losses, the delivery rate, the RTT.

#include <algorithm>

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
  if (largest >= sent().next()) return;
  AckSample sample;
  sample.inFlight = flight_.bytes();
  Time largestSentAt{};
  bool newLargest = false;
  if (sent().contains(largest)) {
    const SentPacket& p = sent().at(largest);
    newLargest = p.state == SentPacket::State::kInFlight || p.state == SentPacket::State::kLost;
    largestSentAt = p.sentAt;
  }
  flight_.forEachNew(ack, [&](uint64_t pn, SentPacket& p) { acknowledge(pn, p, sample, now); });
  if (!samePath) sample.deliveryRate = 0;  // earlier than others: not the path's rate
  if (sample.bytes == 0) return;
  sample.marks = ecn_.onAck(largest, ack.ecn, now);

  flight_.onProgress(now);
  if (auto* active = std::get_if<state::Active>(&state_)) active->ptos = 0;
  if (newLargest && samePath) {
    Duration latest = now - largestSentAt;
    if (rtt_.hasSample()) latest = std::min(latest, std::max<Duration>(4 * rtt_.smoothed(), kPlausibleRtt));
    rtt_.onSample(latest, std::min<Duration>(ack.delay, kMaxAckDelay), now);
    sample.rtt = rtt_.latest();
  }
  bool startAnew = false;
  if (const auto* suspect = std::get_if<state::Suspect>(&state_); suspect && !peerSaid_.refuses) {
    startAnew = suspect->isStale(now);
    enter(state::Active{}, now);
  }
  detectLosses(now);
  sample.now = now;
  sample.srtt = rtt_.smoothed();
  sample.minRtt = rtt_.windowedMin();
  sample.delivered = rate_.delivered();
  gate_.onAck(sample, largestSentAt, startAnew);
  flight_.trim(3 * pto(), now);
}

void Subflow::acknowledge(uint64_t pn, SentPacket& p, AckSample& sample, Time now) {
  bool inFlight = p.state == SentPacket::State::kInFlight;
  if (!inFlight && p.state != SentPacket::State::kLost) return;
  if (inFlight) tally_.onAcked(p);
  flight_.onAcked(pn);
  if (p.ect) ecn_.onAcked(pn);
  if (p.hasControl) tell(SubflowEvent::Kind::kControlDelivered, pn);
  if (inFlight) {
    lossEstimate_.onAcked();
  } else {
    ++counts_.spuriousLosses;
    if (p.countedLost) lossEstimate_.onSpurious();
    if (!p.mtuProbe) gate_.onSpuriousLoss(p.sentAt, now);
  }
  rate_.onAcked(p, sample, now);
  if (p.mtuProbe) {
    mtu_.onProbeAcked(p.bytes, now);
  } else {
    mtu_.onAcked(p.bytes);
  }
}

void Subflow::detectLosses(Time now) {
  LossSample lost;
  lost.now = now;
  lost.inFlight = flight_.bytes();
  uint64_t before = 0;
  Time runStart{};
  bool haveRun = false;
  Duration longestRun{};
  flight_.detectLosses(rtt_, now, [&](uint64_t pn, SentPacket& p) {
    noteLoss(pn, p);
    bool ofEcnTest = p.ect && ecn_.onLost(pn, now);
    flight_.loseData(p, now);
    if (p.hasControl) tell(SubflowEvent::Kind::kControlLost, pn);
    if (p.mtuProbe) return mtu_.onProbeLost(p.bytes, now);
    ++counts_.lostPackets;
    if (ofEcnTest) return;
    mtu_.onLost(p.bytes, p.sentAt);
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
  gate_.onLoss(lost);
}

void Subflow::noteLoss(uint64_t pn, SentPacket& p) {
  if (p.mtuProbe) return;
  lossEstimate_.onLost(pn);
  p.countedLost = true;
  tally_.onLost(p);
  tell(SubflowEvent::Kind::kPacketLost, pn, lossEstimate_.recentRate());
}

bool Subflow::onRecovered(uint64_t pn) {
  if (!sent().contains(pn)) return false;
  const SentPacket& p = sent().at(pn);
  bool news = tally_.onDecoded(p);
  for (size_t i = 0; i < p.dataCount; ++i) ledger_.onRecovered(p.data[i]);
  return news;
}

}  // namespace braid
