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

Half::Data Half::onData(const TcpSegment& s, Duration inactivity, Stamp now) {
  if (!s.hasData() || s.end <= una) return Data::kNone;
  auto [_, wasIdle, wasSilent] = before(inactivity, now);
  if (wasSilent) {
    base = una;
    large = false;
  }
  if (wasIdle || wasSilent) {
    dupAcks = 0;
    ackAt = now;
  }
  activeAt = now;
  if (s.isFin()) fin = true;
  if (s.end > nxt) {
    if (!timing) time(s, now);
    nxt = s.end;
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
