#pragma once

#include "base/packet.h"
#include "inet/endpoint.h"
#include "tunnel/subflow/route.h"

namespace braid {

/// A datagram to send.
struct Datagram {
  Route route;
  Ecn ecn = Ecn::kNotEct;
  bool mtuProbe = false;  ///< set Don't Fragment; EMSGSIZE is no path failure
  Packet bytes;
};

}  // namespace braid
