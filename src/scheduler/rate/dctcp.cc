#include "scheduler/rate/dctcp.h"

namespace braid {

// Section 3.4 leaves growth as in RFC 5681 section 3.1: one datagram per window.
void Dctcp::grow(const AckSample& ack) {
  setWindow(cwnd() + datagram() * static_cast<double>(ack.bytes) / cwnd());
}

}  // namespace braid
