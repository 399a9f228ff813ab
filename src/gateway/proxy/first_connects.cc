#include "gateway/proxy/first_connects.h"

#include <utility>

#include "inet/inner_packet.h"
#include "inet/tcp.h"

namespace braid {

// A connection that the host's rules have not let through stays packets. They may have changed
// since, so a copy of a SYN that they have let through is known by its sequence number.
std::optional<StreamEnds> FirstConnects::take(Packet& packet, bool hasRoom, Time now) {
  if (!policy_.waits() || !isTcpConnect(packet.view())) return std::nullopt;
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  // The listener would not take data that comes with a SYN (RFC 7413).
  if (!ip || !ip->tcp || ip->payloadLength > 0) return std::nullopt;
  const StreamEnds ends{{ip->src, ip->sport}, {ip->dst, ip->dport}};
  const PendingConnects::Beginning begun{ends, ip->tcp->seq};
  if (!pending_.isCopy(begun) &&
      !(policy_.takes(ip->dst) && host_.wasLetThrough(ends.source, ends.destination)))
    return std::nullopt;
  if (pending_.repeat(begun, packet, now)) return ends;
  if (!hasRoom || pending_.isFull() || !lanes_.canOpen(ip->dst)) return std::nullopt;
  if (!lanes_.canAsk(ip->dst)) {
    host_.giveBack(packet.view());
    return ends;
  }
  StreamHandle stream = lanes_.openAsking(ends, now);
  if (!stream) return std::nullopt;
  pending_.add(stream, begun, std::move(packet), now);
  return ends;
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

std::optional<PendingConnects::Output> FirstConnects::poll() {
  while (std::optional<PendingConnects::Output> out = pending_.poll()) {
    if (out->way != PendingConnects::Way::kListener) return out;
    host_.giveBack(out->packet.view());
  }
  return std::nullopt;
}

}  // namespace braid
