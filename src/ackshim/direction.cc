#include "ackshim/direction.h"

namespace braid {

void TcpDirection::begin(const TcpSegment& s, Timestamp32 now) {
  known = true;
  una = s.seq;
  nxt = s.end;
  base = s.isSyn() ? s.seq + 1 : s.seq;
  ackAt = activeAt = now;
  if (s.isSyn()) {
    offersSack = s.options.sackPermitted;
    offersShift = s.options.windowShift.has_value();
    shift = s.options.windowShift.value_or(0);
  }
  time(s, now);
}

void TcpDirection::beginAt(Seq ack, Timestamp32 now) {
  known = true;
  una = nxt = base = ack;
  ackAt = activeAt = now;
}

void TcpDirection::time(const TcpSegment& s, Timestamp32 now) {
  timing = true;
  timedEnd = s.end;
  timedAt = now;
  timestamps = s.options.timestamps.has_value();
  if (timestamps) timedTs = s.options.timestamps->value;
}

TcpDirection::Before TcpDirection::before(const TcpSegment& s, const TcpDirection& back,
                                          Duration inactivity, Timestamp32 now) const {
  bool wasIdle = !isOutstanding();
  bool begins = now - activeAt >= inactivity;
  if (wasIdle && !begins) {
    begins = isAnswer(s, back) || now - latest(ackAt, activeAt) >= quiet(back, inactivity);
  }
  return {nxt, wasIdle, begins};
}

// Whether `s` answers something that its receiver sent with the last ACK or after it. If so, the
// sender had sent nothing for a whole round trip by its own choice. A full window does not cause
// such a pause: there the first of many ACKs lets data through, not the last.
bool TcpDirection::isAnswer(const TcpSegment& s, const TcpDirection& back) const {
  return said > 0 && s.isAck() && back.nxt - s.ack < static_cast<int32_t>(said);
}

// The pause after which data begins a burst when all is acknowledged. A sender that only waited for
// ACKs sends again within a round trip.
Duration TcpDirection::quiet(const TcpDirection& back, Duration inactivity) const {
  if (!rtt.hasSample() || !back.rtt.hasSample()) return inactivity;
  return std::min(inactivity, rtt.patience() + back.rtt.patience());
}

TcpDirection::Data TcpDirection::onData(const TcpSegment& s, const Before& before,
                                        Timestamp32 now) {
  if (!s.hasData() || s.end <= una) return Data::kNone;
  if (before.begins) {
    base = una;
    large = false;
  }
  if (before.wasIdle || before.begins) {
    dupAcks = 0;
    ackAt = now;
  }
  activeAt = now;
  if (s.isFin()) fin = true;
  if (s.end > nxt) {
    if (!timing) time(s, now);
    nxt = s.end;
    said = 0;
    return Data::kNew;
  }
  // Karn's rule: an ACK for data that was sent twice is not a sample, unless timestamps tell which
  // copy it is for.
  if (timing && !timestamps && s.seq < timedEnd) timing = false;
  return Data::kAgain;
}

// Takes an RTT sample. With timestamps, an ACK that echoes a later segment was delayed until that
// one, so it is not a sample (RFC 7323 section 4.3).
void TcpDirection::sample(const TcpSegment& s, Timestamp32 now) {
  timing = false;
  if (timestamps) {
    if (!s.options.timestamps) return;
    if (Seq{s.options.timestamps->echo} > Seq{timedTs}) return;
  }
  rtt.onSample(now - timedAt);
}

TcpDirection::Ack TcpDirection::onAck(const TcpSegment& s, Seq expected, uint32_t gamma,
                                      Timestamp32 now) {
  if (!s.isAck() || s.ack < una) return Ack::kNone;
  bool sameWindow = hasWindow && s.window == scaledWindow();
  // RFC 9293 section 3.10.7.4: an older segment does not update the window.
  if (!hasWindow || s.ack > una || s.end >= expected) {
    window = s.window;
    synWindow = s.isSyn();
    hasWindow = true;
    hopLimit = s.hopLimit;
    dscp = s.dscp;
  }
  if (s.ack > una) {
    if (timing && s.ack >= timedEnd) sample(s, now);
    una = s.ack;
    dupAcks = 0;
    ackAt = now;
    if (una - base >= static_cast<int32_t>(gamma)) large = true;
    return Ack::kNew;
  }
  bool pure = s.length == 0 && !(s.flags & (TcpFields::kSyn | TcpFields::kFin));
  if (!pure || !sameWindow || !isOutstanding() || s.seq < expected) return Ack::kNone;
  if (dupAcks < UINT8_MAX) ++dupAcks;
  return Ack::kDuplicate;
}

}  // namespace braid
