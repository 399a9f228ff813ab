#include "tunnel/lane/stream_assembly.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace braid {

namespace {
/// What comes in order and is no larger is copied behind what is there, bytes: so that no buffer is kept for a few.
/// Ours: copying costs less than what the buffer holds up.
constexpr size_t kSmall = 512;
}  // namespace

bool StreamAssembly::fitsLast(uint64_t offset, size_t bytes) const {
  return offset == arrived_ && bytes <= kSmall && ready_.last && ready_.last->packet.tailroom() >= bytes;
}

size_t StreamAssembly::growth(uint64_t offset, size_t bytes, size_t buffer) const {
  if (offset + bytes <= arrived_ || fitsLast(offset, bytes)) return 0;
  size_t more = buffer + sizeof(StreamChunk);
  if (offset <= arrived_) return more;
  if (!window_) more += sizeof(StreamWindow);
  if (!window_ || !pageOf(offset)) more += sizeof(Page);
  return more;
}

void StreamAssembly::add(uint64_t offset, Packet packet, bool isLast) {
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

// In order: it begins at arrived_.
void StreamAssembly::append(uint64_t offset, Packet packet) {
  size_t bytes = packet.size();
  if (fitsLast(offset, bytes)) {
    std::memcpy(ready_.last->packet.append(bytes), packet.data(), bytes);
  } else {
    count(packet, true);
    ready_.pushBack(*store_->make(std::move(packet), offset));
  }
  arrived_ += bytes;
}

bool StreamAssembly::isCrowded(uint64_t offset) const {
  const Page* page = window_ && offset > arrived_ ? pageOf(offset) : nullptr;
  if (!page || page->chunks < kMostNear) return false;
  size_t near = 0;
  for (const StreamChunk* c = page->grains[grainOf(offset)]; c && near < kMostNear; c = c->next) ++near;
  return near == kMostNear;
}

// Behind a gap: into the chain of its grain, by offset. What one that is there covers is not kept.
void StreamAssembly::hold(uint64_t offset, Packet packet) {
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

// The page for this offset, in the window; both are there after it.
StreamAssembly::Page*& StreamAssembly::takePage(uint64_t offset) {
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

void StreamAssembly::givePage(Page*& page) {
  store_->pages.give(std::exchange(page, nullptr));
  footprint_ -= sizeof(Page);
}

void StreamAssembly::giveWindow() {
  store_->windows.give(std::exchange(window_, nullptr));
  footprint_ -= sizeof(StreamWindow);
}

// The gap that ended behind `from` is filled up to arrived_: what waited behind it is in order now, as far as the next
// gap.
void StreamAssembly::drain(uint64_t from) {
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

size_t StreamAssembly::peek(std::span<ByteView> views) const {
  size_t count = 0;
  for (const StreamChunk* c = ready_.first; c && count < views.size(); c = c->next)
    views[count++] = c->packet.view();
  return count;
}

void StreamAssembly::consume(size_t bytes) {
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

void StreamAssembly::count(const Packet& packet, bool more) {
  size_t bytes = packet.footprint() + sizeof(StreamChunk);
  footprint_ += more ? bytes : size_t{} - bytes;
  packets_ += more ? size_t{1} : size_t{} - 1;
}

void StreamAssembly::drop(StreamChunk* chunk) {
  count(chunk->packet, false);
  store_->give(chunk);
}

void StreamAssembly::clear() {
  consumed_ = arrived_;  // nothing is left to be read
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
