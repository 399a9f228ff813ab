#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ackshim/segment.h"
#include "base/bytes.h"
#include "base/packet.h"
#include "inet/tcp.h"

namespace braid {

/// Copies of the last segments of flows that are not acknowledged, to be sent again by the shim.
/// One bounded store serves all flows. Each direction of a flow has a list in it, oldest first: a
/// flow's record (ShimFlow) holds the list's ends, and must clear() it before it is destroyed.
/// SenderWakeup and ReceiverReplay fill the lists.
class TailCache {
 public:
  struct List {
    uint16_t head = kNone;
    uint16_t tail = kNone;
    uint8_t count = 0;
    bool empty() const { return head == kNone; }
  };
  struct Entry {
    Packet packet;          ///< the whole IP packet
    SeqRange range;         ///< its data, with SYN and FIN
    Timestamp32 sentAt;     ///< when it last left this gateway towards its receiver
    uint8_t sendCount = 0;  ///< how often it did; 255: 255 times or more
   private:
    friend class TailCache;
    uint16_t next = kNone;
  };

  /// `payload`: largest packet that is kept, in bytes. `packets`: in all lists together, at most
  /// 65534; 0: nothing is kept. `perList`: in a list, 1 to 255. Values beyond are clamped.
  TailCache(size_t payload, size_t packets, size_t perList);

  /// Appends a copy of the packet, which is sent now for the first time. When the list is full, its
  /// oldest entry is evicted. False when the store is full or the packet is too large; it is not
  /// kept then.
  bool append(List& list, ByteView packet, SeqRange range, Timestamp32 now);
  /// The sender has sent data of `range` again, and it passes on now: updates sentAt and sendCount
  /// of the entries that overlap it. False when there are none.
  bool onResent(List& list, SeqRange range, Timestamp32 now);
  /// Whether all entries of the list end at or before the range's begin, so that append() of the
  /// range keeps the list in order.
  bool isBehind(const List& list, SeqRange range) const {
    return list.empty() || entries_[list.tail].range.end <= range.begin;
  }
  /// The oldest entry; nullptr for an empty list. Valid until the list changes.
  Entry* front(List& list) { return list.empty() ? nullptr : &entries_[list.head]; }
  /// Removes the oldest entry; there must be one.
  void popFront(List& list);
  /// Removes the entries at the front whose data ends at or before the ACK `una`.
  void popBelow(List& list, Seq una);
  void clear(List& list);

  /// Packets in all lists.
  size_t size() const { return pool_.inUse(); }

 private:
  static constexpr uint16_t kNone = UINT16_MAX;

  PacketPool pool_;
  size_t perList_;
  std::vector<Entry> entries_;  // an entry is in one list, or in that of free ones
  uint16_t free_ = kNone;
};

}  // namespace braid
