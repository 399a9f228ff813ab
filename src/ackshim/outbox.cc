#include "ackshim/outbox.h"

#include <utility>

#include "inet/ip.h"

namespace braid {

bool ShimOutbox::replay(Ring<Packet>& ring, ByteView packet) {
  Packet copy = pool_.copy(packet);
  if (copy && readEcn(copy.view()) != Ecn::kCe) setEcn(copy.span(), Ecn::kNotEct);
  return push(ring, std::move(copy));
}

bool ShimOutbox::acknowledge(const TcpAck& ack) {
  return push(toHost_, buildTcpAck(pool_, ack));
}

bool ShimOutbox::push(Ring<Packet>& ring, Packet packet) {
  if (!packet) {
    ++counters_.noBuffer;
    return false;
  }
  ring.pushBack(std::move(packet));
  return true;
}

Packet ShimOutbox::poll(Ring<Packet>& ring) {
  if (ring.empty()) return {};
  Packet packet = std::move(ring.front());
  ring.popFront();
  return packet;
}

}  // namespace braid
