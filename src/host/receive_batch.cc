#include "host/receive_batch.h"

#include <algorithm>
#include <utility>

namespace braid {

// Fills spare_ from the pool, without holes.
size_t ReceiveBatch::prepare(size_t limit) {
  count_ = 0;
  size_t end = kSize;
  for (size_t i = 0; i < end; ++i) {
    if (!spare_[i]) spare_[i] = pool_.allocate();
    while (!spare_[i] && end > i + 1) spare_[i] = std::move(spare_[--end]);
    if (!spare_[i]) end = i;
  }
  return std::min(limit, end);
}

void ReceiveBatch::take(size_t i, size_t size, const Route& from, Ecn ecn) {
  ReceivedDatagram& r = received_[count_++];
  r.from = from;
  r.ecn = ecn;
  r.bytes = std::move(spare_[i]);
  r.bytes.setSize(size);
}

}  // namespace braid
