#include "gateway/proxy/first_connects.h"

#include <utility>

#include "inet/inner_packet.h"
#include "inet/tcp.h"

namespace braid {

namespace {

// What the packet begins, as far as the listener would take it: not with data that come with a SYN
// (RFC 7413).
std::optional<Beginning> beginningOf(ByteView packet) {
  if (!isTcpConnect(packet)) return std::nullopt;
  std::optional<InnerPacket> ip = parseInnerPacket(packet);
  if (!ip || !ip->tcp || ip->payloadLength > 0) return std::nullopt;
  return Beginning{{{ip->src, ip->sport}, {ip->dst, ip->dport}}, ip->tcp->seq};
}

}  // namespace

// A connection that the host's rules have not let through stays packets. They may have changed
// since, so a copy of a SYN that they have let through is known by its sequence number.
std::optional<StreamEnds> FirstConnects::take(Packet& packet, bool hasRoom, Time now) {
  if (!policy_.waits()) return std::nullopt;
  const std::optional<Beginning> begun = beginningOf(packet.view());
  if (!begun) return std::nullopt;
  const StreamEnds& ends = begun->ends;
  switch (givenBack_.look(*begun, now)) {
    case GivenBack::Copy::kUseless:
      packet = {};
      return ends;
    case GivenBack::Copy::kAstray:
      leave(ends, now);
      return std::nullopt;
    case GivenBack::Copy::kNone:
    case GivenBack::Copy::kRepeated:
      break;
  }
  if (!pending_.isCopy(*begun) && !(policy_.takes(ends.destination.address) &&
                                    host_.wasLetThrough(ends.source, ends.destination)))
    return std::nullopt;
  if (pending_.repeat(*begun, packet, now)) return ends;
  if (!hasRoom || pending_.isFull() || !lanes_.canOpen(ends.destination.address))
    return std::nullopt;
  if (!lanes_.canAsk(ends.destination.address)) {
    giveBack(packet.view(), now);
    return ends;
  }
  StreamHandle stream = lanes_.openAsking(ends, now);
  if (!stream) return std::nullopt;
  pending_.add(stream, *begun, std::move(packet), now);
  return ends;
}

void FirstConnects::giveBack(ByteView syn, Time now) {
  if (std::optional<Beginning> begun = beginningOf(syn)) givenBack_.add(*begun, now);
  host_.giveBack(syn);
}

// The host does not bring the connection's SYN to its listener, so it is to stay packets.
void FirstConnects::leave(const StreamEnds& ends, Time now) {
  if (std::optional<StreamHandle> stream = pending_.join(ends); stream && *stream) {
    figures_.count(StreamCause::kReset);
    lanes_.reset(*stream, StreamCause::kReset, now);
  }
  policy_.avoid({ends.source.address, ends.destination.address}, now);
}

std::optional<StreamHandle> FirstConnects::join(const StreamEnds& ends) {
  givenBack_.join(ends);
  return pending_.join(ends);
}

bool FirstConnects::onEvent(const StreamEvent& event, Time now) {
  const StreamEnds* ends = pending_.find(event.stream);
  if (!ends) return false;
  if (event.answered) pending_.onAnswer(event.stream, now);
  if (!event.reset) return true;
  figures_.count(*event.reset);
  if (*event.reset == StreamCause::kForbidden)
    policy_.avoid({ends->source.address, ends->destination.address}, now);
  figures_.declined += pending_.onReset(event.stream, *event.reset, now);
  return true;
}

void FirstConnects::giveUp(Time then, StreamCause cause, Time now) {
  while (std::optional<PendingConnects::Expired> over = pending_.expire(then)) {
    if (!over->stream) continue;
    figures_.declined += cause == StreamCause::kTimedOut && !over->isAnswered;
    figures_.count(cause);
    lanes_.reset(over->stream, cause, now);
  }
}

std::optional<PendingConnects::Output> FirstConnects::poll(Time now) {
  while (std::optional<PendingConnects::Output> out = pending_.poll()) {
    if (out->way != PendingConnects::Way::kListener) return out;
    giveBack(out->packet.view(), now);
  }
  return std::nullopt;
}

}  // namespace braid
