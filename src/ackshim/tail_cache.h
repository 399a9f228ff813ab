#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ackshim/stamp.h"
#include "base/packet.h"
#include "inet/sequence.h"

namespace braid {

/// The last segments of small flows, until they are acknowledged. One bounded store, a short list for each
/// direction of a flow that needs one.
class TailCache {
 public:
  struct List {
    uint16_t head = kNone;
    uint16_t tail = kNone;
    uint8_t count = 0;
    bool empty() const { return head == kNone; }
  };
  struct Entry {
    Packet packet;
    SeqRange range;
    Stamp givenAt;      ///< when it last went to its receiver
    uint8_t given = 0;  ///< so often
   private:
    friend class TailCache;
    uint16_t next = kNone;
  };

  /// `payload`: the largest packet kept, bytes; `packets` at most 65534, `perList` at most 255.
  TailCache(size_t payload, size_t packets, size_t perList);

  /// Keeps a copy at the end of the list. When the list is full its oldest goes; when the store is full the
  /// packet is not kept (false).
  bool append(List& list, ByteView packet, SeqRange range, Stamp now);
  /// The sender sent what is kept once more. False when it is not kept.
  bool onAgain(List& list, SeqRange range, Stamp now);
  /// All that is kept comes before the range.
  bool isBehind(const List& list, SeqRange range) const {
    return list.empty() || entries_[list.tail].range.end <= range.begin;
  }
  /// nullptr for an empty list.
  Entry* front(List& list) { return list.empty() ? nullptr : &entries_[list.head]; }
  void popFront(List& list);
  /// Drops what is acknowledged.
  void popBelow(List& list, Seq una);
  void clear(List& list);

  size_t size() const { return pool_.inUse(); }

 private:
  static constexpr uint16_t kNone = UINT16_MAX;

  PacketPool pool_;
  size_t perList_;
  std::vector<Entry> entries_;
  uint16_t free_ = kNone;
};

}  // namespace braid
