#include "ackshim/flow_index.h"

#include <algorithm>
#include <bit>

namespace braid {

namespace {
constexpr size_t kIdsPerBucket = 8;
}

FlowIndex::FlowIndex(size_t ids)
    : idBits_(static_cast<unsigned>(std::bit_width(ids))),
      buckets_((ids + kIdsPerBucket - 1) / kIdsPerBucket) {}

void FlowIndex::insert(uint64_t hash, uint32_t id) {
  for (size_t at = home(hash);; at = next(at)) {
    Bucket& bucket = buckets_[at];
    auto* place = std::find(bucket.entries.begin(), bucket.entries.end(), kNone);
    if (place != bucket.entries.end()) {
      *place = tag(hash) | id;
      return;
    }
    ++bucket.passed;
  }
}

void FlowIndex::erase(uint64_t hash, uint32_t id) {
  for (size_t at = home(hash);; at = next(at)) {
    Bucket& bucket = buckets_[at];
    auto* place = std::find(bucket.entries.begin(), bucket.entries.end(), tag(hash) | id);
    if (place != bucket.entries.end()) {
      *place = kNone;
      return;
    }
    --bucket.passed;
  }
}

}  // namespace braid
