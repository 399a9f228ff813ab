#include "tunnel/subflow/subflow_sender.h"

#include <algorithm>

namespace braid {

namespace {
size_t datagramLimit(const Route& route, size_t ipPacket) {
  return ipPacket == 0 ? 0 : ipPacket - outerHeaders(route);
}
}  // namespace

SubflowSender::SubflowSender(const SubflowVoice& voice, const Route& route, const SubflowOptions& options,
                             DataLedger& ledger, ControllerGroup& group, SecretRandom& random, Time now)
    : voice_(voice),
      flight_(ledger, now),
      skipped_(random),
      path_(now),
      mtu_(datagramLimit(route, options.maxOuterMtu), datagramLimit(route, options.outerMtu)),
      gate_(makeController(options.controller,
                           {datagramLimit(route, options.maxOuterMtu), options.initialWindow, options.amp,
                            options.liaBeta},
                           &group),
            flight_, mtu_, path_.rtt()),
      lastSentAt_(now) {}

// ---- what leaves

SentPacket& SubflowSender::onSent(size_t bytes, size_t headers, bool tracked, Time now) {
  bool isFirst = flight_.bytes() == 0;
  SentPacket& p = flight_.push(bytes, tracked, now);
  ++counts_.sentPackets;
  counts_.sentBytes += bytes;
  lastSentAt_ = now;
  gate_.onSent(bytes, headers, tracked, now);
  if (tracked) path_.onSent(p, isFirst, now);
  return p;
}

void SubflowSender::maybeSkip(Time now) {
  PacketNumber next = sent().next();
  if (skipped_.isDue(next) && flight_.skip(now)) skipped_.onSkipped(next);
}

// A silent path may drop what is marked: what shall bring it back is not.
Ecn SubflowSender::codepoint(PacketNumber pn, SentPacket& p, bool silent, Time now) {
  p.ect =
      p.state == SentPacket::State::kInFlight && !p.mtuProbe && !silent && ecn_.onSent(pn, path_.pto(), now);
  return p.ect ? Ecn::kEct0 : Ecn::kNotEct;
}

void SubflowSender::onMtuProbeSent(size_t size, Time now) {
  mtu_.onProbeSent(
      size, std::clamp<Duration>(path_.pto() * 2, MtuDiscovery::kLeastProbeTime, MtuDiscovery::kMaxProbeTime),
      now);
}

PathView SubflowSender::view(Time now, bool overflow) const {
  PathView v = gate_.view(now, overflow);
  v.sent = counts_.sentBytes;
  return v;
}

// ---- what becomes of it

bool SubflowSender::isForged(const AckFrame& ack) const {
  return ack.ranges[0].last >= sent().next() || skipped_.isIn(ack);
}

std::optional<AckNews> SubflowSender::onAck(const AckFrame& ack, bool samePath, Time now) {
  PacketNumber largest = ack.ranges[0].last;
  AckNews news;
  AckSample& sample = news.sample;
  sample.inFlight = flight_.bytes();
  bool newLargest = false;
  if (sent().contains(largest)) {
    const SentPacket& p = sent().at(largest);
    newLargest = p.state == SentPacket::State::kInFlight || p.state == SentPacket::State::kLost;
    news.largestSentAt = p.sentAt;
  }
  flight_.forEachNew(ack, [&](PacketNumber pn, SentPacket& p) { acknowledge(pn, p, sample, now); });
  if (!samePath) sample.deliveryRate = 0;  // earlier than others: not the path's rate
  if (sample.bytes == 0) return std::nullopt;
  sample.marks = ecn_.onAck(largest, ack.ecn, now);

  flight_.onProgress(now);
  if (newLargest && samePath) {
    path_.onRtt(now - news.largestSentAt, ack.delay, now);
    sample.rtt = path_.rtt().latest();
    sample.delay = std::min<Duration>(ack.delay, kMaxAckDelay);
  }
  return news;
}

void SubflowSender::acknowledge(PacketNumber pn, SentPacket& p, AckSample& sample, Time now) {
  bool wasLost = p.state == SentPacket::State::kLost;
  if (!wasLost && p.state != SentPacket::State::kInFlight) return;
  if (!wasLost) tally_.onAcked(p);
  flight_.onAcked(pn);
  if (p.ect) ecn_.onAcked(pn);
  if (p.hasControl) voice_.tell(SubflowEvent::Kind::kControlDelivered, pn);
  if (wasLost && !p.ofOldRoute) {
    ++counts_.spuriousLosses;
    if (!p.mtuProbe) gate_.onSpuriousLoss(p.sentAt, now);
  }
  path_.onAcked(p, wasLost, sample, now);
  if (p.mtuProbe) {
    mtu_.onProbeAcked(p.bytes, now);
  } else {
    mtu_.onAcked(p.bytes);
  }
}

void SubflowSender::learn(AckNews news, bool startAnew, Time now) {
  if (!gate_.isUsable())
    path_.onBack(sent().next());  // what the silence lost is known before the path is back
  detectLosses(now);
  AckSample& sample = news.sample;
  sample.now = now;
  sample.srtt = path_.rtt().smoothed();
  sample.minRtt = path_.rtt().windowedMin();
  sample.delivered = path_.delivered();
  gate_.onAck(sample, news.largestSentAt, startAnew);
  flight_.trim(3 * path_.pto(), now);
}

void SubflowSender::detectLosses(Time now) {
  LossSample lost;
  lost.now = now;
  lost.inFlight = flight_.bytes();
  PacketNumber before{};
  Time runStart{};
  bool haveRun = false;
  Duration longestRun{};
  flight_.detectLosses(path_.rtt(), now, [&](PacketNumber pn, SentPacket& p) {
    noteLoss(pn, p);
    bool ofEcnTest = p.ect && ecn_.onLost(pn, now);
    flight_.loseData(p, now);
    if (p.hasControl) voice_.tell(SubflowEvent::Kind::kControlLost, pn);
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
  lost.persistent = longestRun > 3 * path_.pto();  // RFC 9002 section 7.6.1
  gate_.onLoss(lost);
}

void SubflowSender::noteLoss(PacketNumber pn, SentPacket& p) {
  if (p.mtuProbe) return;
  path_.onLost(pn, p);
  tally_.onLost(p);
  voice_.tell(SubflowEvent::Kind::kPacketLost, pn, path_.losses().recentRate());
}

bool SubflowSender::onRecovered(PacketNumber pn) {
  if (!sent().contains(pn)) return false;
  bool news = tally_.onDecoded(sent().at(pn));
  flight_.recoverData(pn);
  return news;
}

void SubflowSender::moveAllData(Time now) {
  flight_.moveAll(now, [&](PacketNumber pn, const SentPacket& p) {
    if (p.hasControl) voice_.tell(SubflowEvent::Kind::kControlLost, pn);
  });
}

// ---- what happens to the path

void SubflowSender::setUsable(bool usable, Time now) {
  gate_.setUsable(usable, now);
  if (!usable) {
    moveAllData(now);
    return abandonOld(now);
  }
  path_.onBack(sent().next());
  mtu_.onPathUp(now);
  flight_.onProgress(now);
}

void SubflowSender::onNewRoute(bool samePath, Time now) {
  // What went to the old route has most likely not arrived, which is no sign of congestion on the new one.
  flight_.loseAll(now, [&](PacketNumber pn, const SentPacket& p) {
    if (p.hasControl) voice_.tell(SubflowEvent::Kind::kControlLost, pn);
    if (p.mtuProbe) mtu_.onProbeLost(p.bytes, now);
  });
  ecn_.onNewPath(sent().next());
  if (samePath) return;
  gate_.reset(now);
  path_.restart();
  mtu_.restart();
}

// ---- timers

void SubflowSender::onLossTimer(Time now) {
  detectLosses(now);
  flight_.trim(3 * path_.pto(), now);
}

void SubflowSender::onPto(bool isFirst, Time now) {
  if (isFirst) ecn_.onSilence(sent().next());
  PacketNumber oldest = flight_.oldest();
  counts_.timeouts += flight_.isDataMissing(oldest);
  flight_.moveData(flight_.packet(oldest), now);
  if (isFirst) doubt_.spend(flight_.moveOldest(doubt_.left(counts_.sentPackets), now));
}

// A subflow that has been suppressed sends nothing that would show its losses: what should be acknowledged by
// now goes elsewhere.
Time SubflowSender::suppressionDeadline() const {
  Time since = gate_.suppressedAt();
  bool isMoved = since == kNever || since == movedSuppressed_ || flight_.bytes() == 0;
  if (!gate_.isUsable() || isMoved) return kNever;
  return since + path_.rtt().smoothed() + 4 * path_.rtt().variation();
}

void SubflowSender::onSuppressionTimer(Time now) {
  movedSuppressed_ = gate_.suppressedAt();
  moveAllData(now);
}

// Numbers are free then for what is to bring the path back.
void SubflowSender::abandonOld(Time now) {
  flight_.abandonOld(now, [&](PacketNumber pn, const SentPacket& p) {
    if (p.ect) ecn_.onLost(pn, now);
  });
}

// ---- for the operator

void SubflowSender::fill(SubflowStatus& s, const RecoveryOptions& options) const {
  static_cast<SendCounts&>(s) = counts_;
  static_cast<ProtectionCounts&>(s) = tally_.counts();
  path_.fill(s, options);
  s.window = gate_.window();
  s.inFlight = flight_.bytes();
  s.pacingRate = gate_.rate();
  s.resting = gate_.duty() == PathDuty::kNone;
  s.suppressed = gate_.suppressedAt() != kNever;
  s.ceMarks = ecn_.ceCount();
  s.ecn = ecn_.name();
}

}  // namespace braid
