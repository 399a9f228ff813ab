#include "host/receive_batch.h"

#include <algorithm>

namespace braid {

// Fills spare_ from the pool. If the pool is exhausted, the packets that are there are moved to the
// front.
size_t ReceiveBatch::prepare(size_t limit) {
  received_.clear();
  size_t end = kSize;
  for (size_t i = 0; i < end; ++i) {
    if (!spare_[i]) spare_[i] = pool_.allocate();
    while (!spare_[i] && end > i + 1) spare_[i] = std::move(spare_[--end]);
    if (!spare_[i]) end = i;
  }
  return std::min(limit, end);
}

ByteSpan ReceiveBatch::spill(size_t i) {
  if (!spills_) spills_ = std::make_unique_for_overwrite<uint8_t[]>(kSize * kLongest);
  return {spills_.get() + i * kLongest, kLongest};
}

void ReceiveBatch::take(size_t i, size_t size, const Route& from, Ecn ecn) {
  spare_[i].setSize(size);
  add(std::move(spare_[i]), from, ecn);
}

size_t ReceiveBatch::takeSeveral(size_t i, size_t size, size_t each, const Route& from, Ecn ecn) {
  Packet first = std::move(spare_[i]);
  size_t inRoom = std::min(size, pool_.payload());
  first.setSize(inRoom);
  size_t place = received_.size(), lost = 0;
  add({}, from, ecn);
  for (size_t begin = each; begin < size; begin += each) {
    Packet packet = pool_.allocate();
    if (!packet) {
      ++lost;
      continue;
    }
    size_t end = std::min(begin + each, size);
    size_t head = begin < inRoom ? std::min(end, inRoom) - begin : 0;
    uint8_t* to = packet.append(end - begin);
    std::copy_n(first.data() + begin, head, to);
    if (begin + head < end)
      std::copy_n(spill(i).data() + (begin + head - inRoom), end - begin - head, to + head);
    add(std::move(packet), from, ecn);
  }
  first.setSize(std::min(each, size));
  received_[place].bytes = std::move(first);
  return lost;
}

}  // namespace braid
