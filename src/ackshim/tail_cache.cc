#include "ackshim/tail_cache.h"

#include <algorithm>

namespace braid {

TailCache::TailCache(size_t payload, size_t packets, size_t perList)
    : pool_(payload, std::min<size_t>(packets, kNone - 1)),
      perList_(std::clamp<size_t>(perList, 1, UINT8_MAX)),
      entries_(pool_.limit()) {
  for (size_t i = entries_.size(); i-- > 0;) {
    entries_[i].next = free_;
    free_ = static_cast<uint16_t>(i);
  }
}

bool TailCache::append(List& list, ByteView packet, SeqRange range, Timestamp32 now) {
  if (list.count >= perList_) popFront(list);
  if (free_ == kNone) return false;
  Packet copy = pool_.copy(packet);
  if (!copy) return false;
  uint16_t index = free_;
  Entry& entry = entries_[index];
  free_ = entry.next;
  entry.packet = std::move(copy);
  entry.range = range;
  entry.sentAt = now;
  entry.sendCount = 1;
  entry.next = kNone;
  (list.empty() ? list.head : entries_[list.tail].next) = index;
  list.tail = index;
  ++list.count;
  return true;
}

bool TailCache::onResent(List& list, SeqRange range, Timestamp32 now) {
  bool found = false;
  for (uint16_t i = list.head; i != kNone; i = entries_[i].next) {
    Entry& entry = entries_[i];
    if (entry.range.end <= range.begin || entry.range.begin >= range.end) continue;
    entry.sentAt = now;
    if (entry.sendCount < UINT8_MAX) ++entry.sendCount;
    found = true;
  }
  return found;
}

void TailCache::popFront(List& list) {
  uint16_t index = list.head;
  Entry& entry = entries_[index];
  list.head = entry.next;
  if (list.empty()) list.tail = kNone;
  --list.count;
  entry.packet.reset();
  entry.next = free_;
  free_ = index;
}

void TailCache::popBelow(List& list, Seq una) {
  while (!list.empty() && entries_[list.head].range.end <= una) popFront(list);
}

void TailCache::clear(List& list) {
  while (!list.empty()) popFront(list);
}

}  // namespace braid
