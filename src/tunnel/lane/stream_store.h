#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "base/stock.h"

namespace braid {

/// Some bytes of a stream that are kept, at either end.
struct StreamChunk {
  Packet packet;
  uint64_t offset = 0;          ///< of the first byte in the stream
  StreamChunk* next = nullptr;  ///< in whatever chain it is
  uint16_t prefix = 0;  ///< of a unit that is to be sent: bytes of the packet before those of the stream
  uint8_t frame = 0;    ///< and the type of its frame

  /// Offset behind the last byte.
  uint64_t end() const { return offset + packet.size() - prefix; }
};

/// A chain of chunks, first to last.
struct StreamChain {
  StreamChunk* first = nullptr;
  StreamChunk* last = nullptr;

  bool empty() const { return first == nullptr; }
  void pushBack(StreamChunk& chunk) {
    chunk.next = nullptr;
    (last ? last->next : first) = &chunk;
    last = &chunk;
  }
  /// Behind a chunk of the chain.
  void insertAfter(StreamChunk& at, StreamChunk& chunk) {
    chunk.next = at.next;
    at.next = &chunk;
    if (last == &at) last = &chunk;
  }
  /// The chain is not empty.
  StreamChunk* popFront() {
    StreamChunk* chunk = first;
    first = chunk->next;
    if (!first) last = nullptr;
    return chunk;
  }
};

/// Where chunks that came before others wait, by their offset: a place for each kGrain bytes, in pages that are there
/// when something waits in them.
struct StreamWindow {
  static constexpr uint64_t kGrain = 1024;
  static constexpr size_t kPageGrains = 64;
  static constexpr size_t kPages = 256;
  /// Bytes that a window spans.
  static constexpr uint64_t kSpan = kGrain * kPageGrains * kPages;

  struct Page {
    std::array<StreamChunk*, kPageGrains> grains{};  ///< chains, by offset
    size_t chunks = 0;
  };
  std::array<Page*, kPages> pages{};  ///< by offset, modulo kSpan
};

/// Objects that are made on demand. Up to `kMost` that are given back are used again, the memory of others is freed: so
/// that what was needed once, perhaps for a hostile peer, is not kept for ever.
template <typename T, size_t kMost>
class Spares {
 public:
  /// An object as it was given back, or T{}.
  T* take() {
    ++inUse_;
    if (free_.empty()) return std::make_unique<T>().release();
    T* item = free_.back().release();
    free_.pop_back();
    return item;
  }
  /// Gives back one of these.
  void give(T* item) {
    --inUse_;
    std::unique_ptr<T> owned(item);
    if (free_.size() < kMost) free_.push_back(std::move(owned));
  }
  /// Frees what is not in use.
  void shrink() { free_.clear(); }
  /// Objects taken and not given back.
  size_t inUse() const { return inUse_; }

 private:
  std::vector<std::unique_ptr<T>> free_;
  size_t inUse_ = 0;
};

/// Memory of the streams of a session: what one gives back another takes.
struct StreamStore {
  Stock<StreamChunk> chunks;
  Spares<StreamWindow::Page, 64> pages;
  Spares<StreamWindow, 16> windows;

  StreamChunk* make(Packet packet, uint64_t offset) {
    StreamChunk* chunk = chunks.take();
    chunk->packet = std::move(packet);
    chunk->offset = offset;
    chunk->next = nullptr;
    chunk->prefix = 0;
    chunk->frame = 0;
    return chunk;
  }
  void give(StreamChunk* chunk) {
    chunk->packet.reset();
    chunks.give(chunk);
  }
  /// Frees what is not in use; chunks only if none is.
  void shrink() {
    chunks.shrink();
    pages.shrink();
    windows.shrink();
  }
};

}  // namespace braid
