#include "ackshim/half.h"

namespace braid {

void Half::begin(const TcpSegment& s, Stamp now) {
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

void Half::beginAt(Seq ack, Stamp now) {
  known = true;
  una = nxt = base = ack;
  ackAt = activeAt = now;
}

void Half::time(const TcpSegment& s, Stamp now) {
  timing = true;
  timedEnd = s.end;
  timedAt = now;
  timestamps = s.options.timestamps.has_value();
  if (timestamps) timedTs = s.options.timestamps->value;
}

Half::Before Half::before(const TcpSegment& s, const Half& back, Duration inactivity, Stamp now) const {
  bool wasIdle = !isOutstanding();
  bool begins = now - activeAt >= inactivity;
  if (wasIdle && !begins) {
    begins = isAnswer(s, back) || now - latest(ackAt, activeAt) >= quiet(back, inactivity);
  }
  return {nxt, wasIdle, begins};
}

// The sender had heard of what its receiver said with the last ACK or after it: in the round trip that this took it
// sent nothing. A window that is full makes no such pause: there the first ACK of many lets data through, not the last.
bool Half::isAnswer(const TcpSegment& s, const Half& back) const {
  return said > 0 && s.isAck() && back.nxt - s.ack < static_cast<int32_t>(said);
}

// After the ACK of all, a sender that waited for it is heard of again within a round trip.
Duration Half::quiet(const Half& back, Duration inactivity) const {
  if (!rtt.hasSample() || !back.rtt.hasSample()) return inactivity;
  return std::min(inactivity, rtt.patience() + back.rtt.patience());
}

Half::Data Half::onData(const TcpSegment& s, const Before& before, Stamp now) {
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
  // Karn: an ACK of what was sent twice says nothing, unless timestamps tell which one it is for.
  if (timing && !timestamps && s.seq < timedEnd) timing = false;
  return Data::kAgain;
}

// With timestamps, an ACK that echoes a later segment waited for that one (RFC 7323 section 4.3).
void Half::sample(const TcpSegment& s, Stamp now) {
  timing = false;
  if (timestamps) {
    if (!s.options.timestamps) return;
    if (Seq{s.options.timestamps->echo} > Seq{timedTs}) return;
  }
  rtt.onSample(now - timedAt);
}

Half::Ack Half::onAck(const TcpSegment& s, Seq expected, uint32_t gamma, Stamp now) {
  if (!s.isAck() || s.ack < una) return Ack::kNone;
  bool sameWindow = hasWindow && s.window == window;
  // RFC 9293 section 3.10.7.4: an older segment has no say about the window.
  if (!hasWindow || s.ack > una || s.end >= expected) {
    window = s.window;
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
