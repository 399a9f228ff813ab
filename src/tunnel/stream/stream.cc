#include "tunnel/stream/stream.h"

#include <algorithm>
#include <utility>

namespace braid {

void ReceiveMemory::onChange(Stream& stream) {
  const Reassembler& assembly = stream.assembly_;
  bytes_ += assembly.footprint() - std::exchange(stream.heldBytes_, assembly.footprint());
  packets_ += assembly.packets() - std::exchange(stream.heldPackets_, assembly.packets());
  shared_.set(bytes_);
  buffers_.set(packets_);
  size_t now = classOf(assembly.readable());
  size_t before = std::exchange(stream.lagClass_, static_cast<uint8_t>(now));
  if (now == before) return;
  if (before > 0) byLag_[before].erase(stream);
  if (now > 0) byLag_[now].pushBack(stream);
}

Stream* ReceiveMemory::mostUnread() const {
  for (size_t i = kClasses - 1; i > 0; --i)
    if (!byLag_[i].empty()) return byLag_[i].front();
  return nullptr;
}

}  // namespace braid
