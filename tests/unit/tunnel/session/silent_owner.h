#pragma once

#include "tunnel/session/session_owner.h"

namespace braid {

/// Counts what a session hands over.
struct SilentOwner final : SessionOwner {
  size_t delivered = 0;
  size_t tooLarge = 0;
  size_t handedBack = 0;
  void onDelivered(Packet) override { ++delivered; }
  void onTooLarge(ByteView) override { ++tooLarge; }
  void onHandedBack(Packet) override { ++handedBack; }
};

}  // namespace braid
