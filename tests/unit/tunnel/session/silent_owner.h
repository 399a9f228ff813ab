#pragma once

#include "tunnel/session/peer_events.h"

namespace braid {

/// Counts the packets that a session delivers.
struct SilentOwner final : SessionOwner {
  size_t delivered = 0;
  size_t tooLarge = 0;
  size_t handedBack = 0;
  void onDelivered(Packet) override { ++delivered; }
  void onTooLarge(ByteView) override { ++tooLarge; }
  void onHandedBack(Packet) override { ++handedBack; }
};

}  // namespace braid
