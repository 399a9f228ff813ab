#pragma once

#include "base/packet.h"
#include "inet/endpoint.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/cipher_work.h"

namespace braid {

/// A datagram to send, with Don't Fragment set.
struct Datagram {
  Route route;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
  CipherWork unsealed{};  ///< must be done before it leaves, where SessionOptions::sealLater is on
};

}  // namespace braid
