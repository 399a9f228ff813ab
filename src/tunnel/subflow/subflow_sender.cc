#include "tunnel/subflow/subflow_sender.h"

#include <algorithm>

namespace braid {

static_assert(ReceiveTime::kModulus == OneWayDelay::kModulus);

namespace {
size_t datagramLimit(const Route& route, size_t ipPacket) {
  return ipPacket == 0 ? 0 : ipPacket - outerHeaders(route);
}
}  // namespace

SubflowSender::SubflowSender(const SubflowEventSink& voice, const Route& route,
                             const SubflowOptions& options, DataTracker& dataTracker,
                             ControllerGroup& group, SecretRandom& random, Time now)
    : eventSink_(voice),
      group_(group),
      inFlightTracker_(dataTracker, now),
      skipped_(random),
      path_(now),
      mtu_(datagramLimit(route, options.maxOuterMtu), datagramLimit(route, options.outerMtu)),
      admission_(makeController(options.controller,
                                {datagramLimit(route, options.maxOuterMtu), options.initialWindow,
                                 options.amp, options.liaBeta},
                                &group),
                 inFlightTracker_, mtu_, path_.rtt()),
      lastSentAt_(now) {}

// ---- what leaves

SentPacket& SubflowSender::onSent(size_t bytes, size_t headers, bool tracked, Time now) {
  bool isFirst = inFlightTracker_.bytes() == 0;
  SentPacket& p = inFlightTracker_.push(bytes, tracked, now);
  ++counts_.sentPackets;
  counts_.sentBytes += bytes;
  lastSentAt_ = now;
  admission_.onSent(bytes, headers, tracked, now);
  if (tracked) path_.onSent(p, isFirst, now);
  return p;
}

void SubflowSender::maybeSkip(Time now) {
  PacketNumber next = sent().next();
  if (skipped_.isDue(next) && inFlightTracker_.skip(now)) skipped_.onSkipped(next);
}

// A silent path may drop marked packets, so the packets that shall bring it back are not marked.
Ecn SubflowSender::codepoint(PacketNumber pn, SentPacket& p, bool silent, Time now) {
  p.ect = p.state == SentPacket::State::kInFlight && !p.mtuProbe && !silent &&
          ecn_.onSent(pn, path_.pto(), now);
  return p.ect ? Ecn::kEct0 : Ecn::kNotEct;
}

void SubflowSender::onMtuProbeSent(size_t size, Time now) {
  mtu_.onProbeSent(size,
                   std::clamp<Duration>(path_.pto() * 2, MtuDiscovery::kLeastProbeTime,
                                        MtuDiscovery::kMaxProbeTime),
                   now);
}

PathView SubflowSender::view(Time now, bool overflow) const {
  PathView v = admission_.view(now, overflow);
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
  sample.inFlight = inFlightTracker_.bytes();
  bool newLargest = false;
  if (sent().contains(largest)) {
    const SentPacket& p = sent().at(largest);
    newLargest = p.state == SentPacket::State::kInFlight || p.state == SentPacket::State::kLost;
    news.largestSentAt = p.sentAt;
  }
  inFlightTracker_.forEachNew(ack, [&](PacketNumber pn, SentPacket& p) {
    news.oldestSentAt = std::min(news.oldestSentAt, p.sentAt);
    acknowledge(pn, p, sample, now);
  });
  if (!samePath) sample.deliveryRate = 0;  // it came earlier than over this path
  if (sample.bytes == 0) return std::nullopt;
  sample.marks = ecn_.onAck(largest, ack.ecn, now);
  if (sample.marks > 0) path_.onMarks(sample.largestSentAt);

  inFlightTracker_.onProgress(now);
  if (newLargest && samePath) {
    path_.onRtt(now - news.largestSentAt, ack.delay, now, admission_.ownQueue());
    sample.rtt = path_.rtt().latest();
    sample.delay = std::min<Duration>(ack.delay, kMaxAckDelay);
    if (ack.received) {
      path_.onReceiveTime(
          {news.largestSentAt, now, ack.delay, ack.received->micros, ack.received->ofRun});
    }
  }
  return news;
}

void SubflowSender::acknowledge(PacketNumber pn, SentPacket& p, AckSample& sample, Time now) {
  bool wasLost = p.state == SentPacket::State::kLost;
  if (!wasLost && p.state != SentPacket::State::kInFlight) return;
  if (!wasLost) tally_.onAcked(p);
  inFlightTracker_.onAcked(pn);
  if (p.ect) ecn_.onAcked(pn);
  if (p.hasControl) eventSink_.tell(SubflowEvent::Kind::kControlDelivered, pn);
  if (wasLost && !p.ofOldRoute) {
    ++counts_.spuriousLosses;
    if (!p.mtuProbe) admission_.onSpuriousLoss(p.sentAt, now);
  }
  path_.onAcked(p, wasLost, sample, now);
  if (p.mtuProbe) {
    mtu_.onProbeAcked(p.bytes, now);
  } else {
    mtu_.onAcked(p.bytes);
  }
}

void SubflowSender::learn(AckNews news, bool startAnew, Time now) {
  if (!admission_.isUsable())
    path_.onBack(sent().next());  // first, so that losses found now count as the silence's
  detectLosses(now);
  AckSample& sample = news.sample;
  sample.now = now;
  sample.srtt = path_.rtt().smoothed();
  sample.minRtt = path_.rtt().windowedMin();
  sample.delivered = path_.delivered();
  admission_.onAck(sample, news.largestSentAt, startAnew);
  inFlightTracker_.trim(3 * path_.pto(), now);
}

void SubflowSender::detectLosses(Time now) {
  LossSample lost;
  lost.now = now;
  lost.inFlight = inFlightTracker_.bytes();
  PacketNumber before{};
  Time runStart{};
  bool haveRun = false;
  Duration longestRun{};
  inFlightTracker_.detectLosses(path_.rtt(), now, [&](PacketNumber pn, SentPacket& p) {
    noteLoss(pn, p, now);
    bool ofEcnTest = p.ect && ecn_.onLost(pn, now);
    inFlightTracker_.loseData(p, now);
    if (p.hasControl) eventSink_.tell(SubflowEvent::Kind::kControlLost, pn);
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
  admission_.onLoss(lost);
}

void SubflowSender::noteLoss(PacketNumber pn, SentPacket& p, Time now) {
  if (p.mtuProbe) return;
  path_.onLost(pn, p, group_.congestion(), now);
  tally_.onLost(p);
  eventSink_.tell(SubflowEvent::Kind::kPacketLost, pn, path_.losses().recentRate());
}

bool SubflowSender::onRecovered(PacketNumber pn) {
  if (!sent().contains(pn)) return false;
  bool news = tally_.onDecoded(sent().at(pn));
  inFlightTracker_.recoverData(pn);
  return news;
}

void SubflowSender::moveAllData(Time now) {
  inFlightTracker_.moveAll(now, [&](PacketNumber pn, const SentPacket& p) {
    if (p.hasControl) eventSink_.tell(SubflowEvent::Kind::kControlLost, pn);
  });
}

// ---- what happens to the path

void SubflowSender::setUsable(bool usable, Time now) {
  admission_.setUsable(usable, now);
  if (!usable) {
    moveAllData(now);
    return abandonOld(now);
  }
  path_.onBack(sent().next());
  mtu_.onPathUp(now);
  inFlightTracker_.onProgress(now);
}

void SubflowSender::onNewRoute(bool samePath, Time now) {
  // Packets sent to the old route have most likely not arrived. That is not a sign of congestion on
  // the new one.
  inFlightTracker_.loseAll(now, [&](PacketNumber pn, const SentPacket& p) {
    if (p.hasControl) eventSink_.tell(SubflowEvent::Kind::kControlLost, pn);
    if (p.mtuProbe) mtu_.onProbeLost(p.bytes, now);
  });
  ecn_.onNewPath(sent().next());
  if (samePath) return;
  admission_.reset(now);
  path_.restart();
  mtu_.restart();
}

// ---- timers

void SubflowSender::onLossTimer(Time now) {
  detectLosses(now);
  inFlightTracker_.trim(3 * path_.pto(), now);
}

void SubflowSender::onPto(bool isFirst, Time now) {
  if (isFirst) ecn_.onSilence(sent().next());
  PacketNumber oldest = inFlightTracker_.oldest();
  counts_.timeouts += inFlightTracker_.isDataMissing(oldest);
  inFlightTracker_.moveData(inFlightTracker_.packet(oldest), now);
  if (isFirst)
    earlyReinjection_.spend(
        inFlightTracker_.moveOldest(earlyReinjection_.left(counts_.sentPackets), now));
}

// A suppressed subflow sends nothing that would show its losses. So data that should have been
// acknowledged by now is reinjected elsewhere.
Time SubflowSender::suppressionDeadline() const {
  Time since = admission_.suppressedAt();
  bool isMoved = since == kNever || since == movedSuppressed_ || inFlightTracker_.bytes() == 0;
  if (!admission_.isUsable() || isMoved) return kNever;
  return since + path_.rtt().smoothed() + 4 * path_.rtt().variation();
}

void SubflowSender::onSuppressionTimer(Time now) {
  movedSuppressed_ = admission_.suppressedAt();
  moveAllData(now);
}

// Frees packet numbers for the packets that are to bring the path back.
void SubflowSender::abandonOld(Time now) {
  inFlightTracker_.abandonOld(now, [&](PacketNumber pn, const SentPacket& p) {
    if (p.ect) ecn_.onLost(pn, now);
  });
}

// ---- for the operator

void SubflowSender::fill(SubflowStatus& s, const RecoveryOptions& options) const {
  static_cast<SendCounts&>(s) = counts_;
  static_cast<ProtectionCounts&>(s) = tally_.counts();
  path_.fill(s, options);
  s.window = admission_.window();
  s.inFlight = inFlightTracker_.bytes();
  s.pacingRate = admission_.rate();
  s.resting = admission_.role() == PathRole::kNone;
  s.suppressed = admission_.suppressedAt() != kNever;
  s.ceMarks = ecn_.ceCount();
  s.ecn = ecn_.name();
}

}  // namespace braid
