#pragma once

#include "base/packet.h"
#include "inet/endpoint.h"
#include "tunnel/subflow/route.h"

namespace braid {

/// A datagram to send, with Don't Fragment set.
struct Datagram {
  Route route;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
};

}  // namespace braid
