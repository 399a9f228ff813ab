#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/huge_array.h"

namespace braid {

/// Small ids by hash: open addressing in buckets of one cache line, in which most look-ups end. An entry is
/// an id and bits of the hash, so that hardly any record is looked at in vain. A bucket counts the ids that
/// found it full and went on to the next; nothing is left behind by what is erased.
class FlowIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  /// At most, with all ids in use: 8 of 15 places are taken.
  static constexpr size_t kBytesPerId = 8;

  /// Ids are below `ids`, which is at most 2^30.
  explicit FlowIndex(size_t ids);

  /// The first id with this hash for which same(id) is true; kNone: there is none.
  template <typename F>
  uint32_t find(uint64_t hash, F&& same) const {
    size_t at = home(hash);
    for (size_t n = 0; n < buckets_.size(); ++n, at = next(at)) {
      const Bucket& bucket = buckets_[at];
      for (uint32_t entry : bucket.entries) {
        if ((entry ^ tag(hash)) >> idBits_ == 0 && entry != kNone && same(entry & idMask())) {
          return entry & idMask();
        }
      }
      if (bucket.passed == 0) break;
    }
    return kNone;
  }
  /// An id that is not there, whose hash is another id's at most by chance.
  void insert(uint64_t hash, uint32_t id);
  /// An id that is there with this hash.
  void erase(uint64_t hash, uint32_t id);

 private:
  struct alignas(64) Bucket {
    Bucket() { entries.fill(kNone); }
    std::array<uint32_t, 15> entries;
    uint32_t passed = 0;
  };

  // The high half of the hash chooses the bucket, the low one is the tag.
  size_t home(uint64_t hash) const { return (hash >> 32) * buckets_.size() >> 32; }
  size_t next(size_t at) const { return at + 1 == buckets_.size() ? 0 : at + 1; }
  uint32_t idMask() const { return (uint32_t{1} << idBits_) - 1; }
  uint32_t tag(uint64_t hash) const { return static_cast<uint32_t>(hash) & ~idMask(); }

  unsigned idBits_;  // of an entry, the low ones; all ones are no id
  HugeArray<Bucket> buckets_;
};

}  // namespace braid
