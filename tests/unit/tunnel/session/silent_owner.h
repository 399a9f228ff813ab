#pragma once

#include <vector>

#include "tunnel/session/session_owner.h"

namespace braid {

/// Keeps what a session tells.
struct SilentOwner final : SessionOwner {
  std::vector<Event> events;
  DropCounts drops{};
  size_t delivered = 0;
  size_t tooLarge = 0;
  void onDelivered(Packet) override { ++delivered; }
  void onEvent(Event event) override { events.push_back(std::move(event)); }
  void onDrop(Drop cause, uint64_t count) override { drops[static_cast<size_t>(cause)] += count; }
  void onTooLarge(ByteView) override { ++tooLarge; }
};

}  // namespace braid
