#pragma once

#include "base/bytes.h"
#include "base/random.h"
#include "inet/addresses.h"
#include "simnet/inner_packets.h"

namespace braid::sim {

/// A UDP datagram on a modelled link.
struct WireDatagram {
  Endpoint src;
  Endpoint dst;
  Ecn ecn = Ecn::kNotEct;
  Bytes bytes;
};
/// What a link may do to a datagram (see link.h).
bool clearEcn(WireDatagram& d);
bool markCe(WireDatagram& d);
void corrupt(WireDatagram& d, Random& random);

}  // namespace braid::sim
