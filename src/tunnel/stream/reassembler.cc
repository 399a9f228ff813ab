#include "tunnel/stream/reassembler.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace braid {

namespace {
/// In-order data of at most this many bytes is copied to the end of the last buffer if it fits, so
/// that no whole buffer is kept for a few bytes. Chosen: copying costs less than the buffer that
/// would be kept.
constexpr size_t kSmall = 512;
}  // namespace

bool Reassembler::fitsLast(uint64_t offset, size_t bytes) const {
  return offset == arrived_ && bytes <= kSmall && ready_.last &&
         ready_.last->packet.tailroom() >= bytes;
}

size_t Reassembler::growth(uint64_t offset, size_t bytes, size_t buffer) const {
  if (offset + bytes <= arrived_ || fitsLast(offset, bytes)) return 0;
  size_t more = buffer + sizeof(StreamChunk);
  if (offset <= arrived_) return more;
  if (!window_) more += sizeof(StreamWindow);
  if (!window_ || !pageOf(offset)) more += sizeof(Page);
  return more;
}

void Reassembler::add(uint64_t offset, Packet packet, bool isLast) {
  uint64_t end = offset + packet.size();
  if (isLast) end_ = end;
  seen_ = std::max(seen_, end);
  if (end <= arrived_) return;
  if (offset > arrived_) return hold(offset, std::move(packet));
  packet.trimFront(static_cast<size_t>(arrived_ - offset));
  uint64_t from = arrived_;
  append(from, std::move(packet));
  if (held_ > 0) drain(from);
}

// The packet is in order: it begins at arrived_.
void Reassembler::append(uint64_t offset, Packet packet) {
  size_t bytes = packet.size();
  if (fitsLast(offset, bytes)) {
    std::memcpy(ready_.last->packet.append(bytes), packet.data(), bytes);
  } else {
    count(packet, true);
    ready_.pushBack(*store_->make(std::move(packet), offset));
  }
  arrived_ += bytes;
}

bool Reassembler::isCrowded(uint64_t offset) const {
  const Page* page = window_ && offset > arrived_ ? pageOf(offset) : nullptr;
  if (!page || page->chunks < kMostNear) return false;
  size_t near = 0;
  for (const StreamChunk* c = page->grains[grainOf(offset)]; c && near < kMostNear; c = c->next)
    ++near;
  return near == kMostNear;
}

// Adds a packet behind a gap to the chain of its grain, sorted by offset. It is not kept if a
// packet of the chain covers it.
void Reassembler::hold(uint64_t offset, Packet packet) {
  Page*& page = takePage(offset);
  StreamChunk** at = &page->grains[grainOf(offset)];
  uint64_t end = offset + packet.size();
  while (*at && (*at)->offset <= offset) {
    if ((*at)->end() >= end) return;
    at = &(*at)->next;
  }
  count(packet, true);
  StreamChunk* chunk = store_->make(std::move(packet), offset);
  chunk->next = std::exchange(*at, chunk);
  ++page->chunks;
  ++held_;
}

// The page for this offset in the window; creates the window and the page if needed.
Reassembler::Page*& Reassembler::takePage(uint64_t offset) {
  if (!window_) {
    window_ = store_->windows.take();
    footprint_ += sizeof(StreamWindow);
  }
  Page*& page = pageOf(offset);
  if (!page) {
    page = store_->pages.take();
    footprint_ += sizeof(Page);
  }
  return page;
}

void Reassembler::givePage(Page*& page) {
  store_->pages.give(std::exchange(page, nullptr));
  footprint_ -= sizeof(Page);
}

void Reassembler::giveWindow() {
  store_->windows.give(std::exchange(window_, nullptr));
  footprint_ -= sizeof(StreamWindow);
}

// The gap that began at `from` is filled up to arrived_. Appends the chunks that waited behind it
// and are in order now, up to the next gap.
void Reassembler::drain(uint64_t from) {
  uint64_t grain = from / StreamWindow::kGrain;
  for (; held_ > 0 && grain <= arrived_ / StreamWindow::kGrain; ++grain) {
    uint64_t offset = grain * StreamWindow::kGrain;
    Page*& page = pageOf(offset);
    if (!page) continue;
    StreamChunk*& first = page->grains[grainOf(offset)];
    while (first && first->offset <= arrived_) {
      StreamChunk* chunk = std::exchange(first, first->next);
      --page->chunks;
      --held_;
      uint64_t end = chunk->end();
      Packet packet = std::move(chunk->packet);
      uint64_t begins = chunk->offset;
      store_->chunks.give(chunk);
      count(packet, false);
      if (end <= arrived_) continue;
      packet.trimFront(static_cast<size_t>(arrived_ - begins));
      append(arrived_, std::move(packet));
    }
    if (page->chunks == 0) givePage(page);
  }
  if (held_ == 0) giveWindow();
}

size_t Reassembler::peek(std::span<ByteView> views) const {
  size_t count = 0;
  for (const StreamChunk* c = ready_.first; c && count < views.size(); c = c->next)
    views[count++] = c->packet.view();
  return count;
}

void Reassembler::consume(size_t bytes) {
  bytes = std::min(bytes, readable());
  consumed_ += bytes;
  while (bytes > 0) {
    Packet& packet = ready_.first->packet;
    size_t taken = std::min(bytes, packet.size());
    bytes -= taken;
    if (taken == packet.size()) {
      drop(ready_.popFront());
    } else {
      packet.trimFront(taken);
      ready_.first->offset += taken;
    }
  }
}

void Reassembler::count(const Packet& packet, bool more) {
  size_t bytes = packet.footprint() + sizeof(StreamChunk);
  footprint_ += more ? bytes : size_t{} - bytes;
  packets_ += more ? size_t{1} : size_t{} - 1;
}

void Reassembler::drop(StreamChunk* chunk) {
  count(chunk->packet, false);
  store_->give(chunk);
}

void Reassembler::clear() {
  consumed_ = arrived_;  // nothing is left to read
  while (!ready_.empty()) drop(ready_.popFront());
  if (!window_) return;
  for (Page*& page : window_->pages) {
    if (!page) continue;
    for (StreamChunk*& first : page->grains) {
      while (first) drop(std::exchange(first, first->next));
    }
    page->chunks = 0;
    givePage(page);
  }
  held_ = 0;
  giveWindow();
}

}  // namespace braid
