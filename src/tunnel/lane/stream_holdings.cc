#include "tunnel/lane/stream_holdings.h"

#include <algorithm>
#include <utility>

namespace braid {

void StreamHoldings::onChange(Stream& stream) {
  const StreamAssembly& assembly = stream.assembly_;
  bytes_ += assembly.footprint() - std::exchange(stream.heldBytes_, assembly.footprint());
  packets_ += assembly.packets() - std::exchange(stream.heldPackets_, assembly.packets());
  shared_.set(bytes_);
  buffers_.set(packets_);
  size_t now = classOf(assembly.footprint());
  size_t before = std::exchange(stream.sizeClass_, static_cast<uint8_t>(now));
  if (now == before) return;
  if (before > 0) bySize_[before].erase(stream);
  if (now > 0) bySize_[now].pushBack(stream);
}

Stream* StreamHoldings::largest() const {
  for (size_t i = kClasses - 1; i > 0; --i)
    if (!bySize_[i].empty()) return bySize_[i].front();
  return nullptr;
}

}  // namespace braid
