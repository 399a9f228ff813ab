#pragma once

// Sealing and opening apart from the core. The core alone decides what is sealed and opened, under which key and number
// and in which order; the work itself needs nothing else of it, so that the core's driver may spread it over threads.
//
//     out   the core numbers a datagram and hands it over with its work; the driver seals it before it leaves
//     in    the driver asks which work a datagram will be and does it; the core looks whether it was the right one

#include <cassert>
#include <memory>

#include "base/bytes.h"
#include "tunnel/wire/aead.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// What is to be done to one datagram, in place. It keeps the keys, which the core may have given up meanwhile.
struct CipherWork {
  std::shared_ptr<Aead> keys = nullptr;  ///< empty: there is nothing to do
  SubflowId subflow{};
  PacketNumber packetNumber{};
  bool tried = false;  ///< it was done, well or not: not again
  bool good = false;   ///< it was done well

  explicit operator bool() const { return keys != nullptr; }

  /// `datagram`: its header, the frames, and kTagSize bytes of room. When that is not `good` afterwards, nothing of it
  /// may be sent, and the keys say so to the core (Aead::isBroken). To be called once. `lane`: that of the thread.
  void seal(ByteSpan datagram, unsigned lane) {
    assert(!tried);
    tried = true;
    ByteView frames = datagram.subspan(kHeaderSize, datagram.size() - kHeaderSize - kTagSize);
    good = keys->seal(subflow.value(), packetNumber.value(), datagram.first(kHeaderSize), {&frames, 1},
                      datagram.data() + kHeaderSize, lane);
  }
  /// `datagram`: as it came. When that is not `good` afterwards, its bytes are undefined.
  void open(ByteSpan datagram, unsigned lane) {
    assert(!tried);
    tried = true;
    good = keys->open(subflow.value(), packetNumber.value(), datagram.first(kHeaderSize),
                      datagram.subspan(kHeaderSize), lane);
  }
};

}  // namespace braid
