#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/memory.h"
#include "base/packet.h"

namespace braid {

/// Bytes of a stream that are kept in one buffer, at either end.
struct StreamChunk {
  Packet packet;
  uint64_t offset = 0;          ///< of the first byte in the stream
  StreamChunk* next = nullptr;  ///< in the chain that has it
  /// Of a unit to send: bytes of the packet that precede those of the stream.
  uint16_t prefix = 0;
  uint8_t frame = 0;  ///< of a unit to send: type of its frame

  /// Offset after the last byte.
  uint64_t end() const { return offset + packet.size() - prefix; }
};

/// A chain of chunks, from first to last.
struct StreamChain {
  StreamChunk* first = nullptr;
  StreamChunk* last = nullptr;

  bool empty() const { return first == nullptr; }
  void pushBack(StreamChunk& chunk) {
    chunk.next = nullptr;
    (last ? last->next : first) = &chunk;
    last = &chunk;
  }
  /// Inserts `chunk` after `at`, which is in the chain.
  void insertAfter(StreamChunk& at, StreamChunk& chunk) {
    chunk.next = at.next;
    at.next = &chunk;
    if (last == &at) last = &chunk;
  }
  /// The chain must not be empty.
  StreamChunk* popFront() {
    StreamChunk* chunk = first;
    first = chunk->next;
    if (!first) last = nullptr;
    return chunk;
  }
};

/// Chunks that arrived before others wait here, by their offset: one place for each kGrain bytes. A
/// page of places exists only while something waits in it.
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

/// Object pools that the streams of a session share.
struct ChunkPool {
  ObjectPool<StreamChunk> chunks;
  BoundedPool<StreamWindow::Page, 64> pages;
  BoundedPool<StreamWindow, 16> windows;

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
  /// Frees the objects that are not in use; chunks only if none is in use.
  void shrink() {
    chunks.shrink();
    pages.shrink();
    windows.shrink();
  }
};

}  // namespace braid
