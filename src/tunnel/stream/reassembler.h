#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/stream/chunks.h"

namespace braid {

/// The receive side of one direction of a stream. Puts ranges that arrive in any order, overlapping
/// or twice, into the order of the stream, and keeps them until they are read. Packets are kept as
/// they came, except that small ones in order are merged.
///
/// Invariants. The readable bytes are one chain without a gap, from consumed() to arrived(). All
/// other kept bytes begin after arrived() and less than StreamWindow::kSpan after consumed(); the
/// caller ensures this by the credit that it grants. The work for a packet grows with its bytes and
/// with the bytes that it makes readable; at most kMostNear of the kept packets are looked at.
class Reassembler {
 public:
  /// At most this many packets wait in one grain of the window. A grain is 1 KB, so there are more
  /// only where each packet has less than 8 bytes, or where a hostile peer sends bytes again and
  /// again.
  static constexpr size_t kMostNear = 128;

  /// `store` must outlive it.
  explicit Reassembler(ChunkPool& store) : store_(&store) {}
  ~Reassembler() { clear(); }
  Reassembler(const Reassembler&) = delete;
  Reassembler& operator=(const Reassembler&) = delete;

  /// Whether a range agrees with what is known of the end of the stream. `end`: offset after its
  /// last byte. `isLast`: the range says that it is the last one.
  bool agrees(uint64_t end, bool isLast) const {
    return end_ ? end <= *end_ && (!isLast || end == *end_) : !isLast || end >= seen_;
  }
  /// Adds a range. An empty one only says where the stream ends.
  void add(uint64_t offset, Packet packet, bool isLast);

  /// Bytes that can be read now.
  size_t readable() const { return static_cast<size_t>(arrived_ - consumed_); }
  /// Sets `views` to the next readable bytes, in order, at most one piece for each view. Returns
  /// how many views are set.
  size_t peek(std::span<ByteView> views) const;
  /// Marks `bytes` bytes, at most readable(), as read.
  void consume(size_t bytes);
  /// All bytes up to the end of the stream are read.
  bool isAtEnd() const { return end_ == consumed_; }
  /// All bytes up to the end of the stream have arrived.
  bool isWhole() const { return end_ == arrived_; }

  /// Offset after what was read, and after what has arrived without a gap before it.
  uint64_t consumed() const { return consumed_; }
  uint64_t arrived() const { return arrived_; }
  /// Bytes of memory: the packets, as whole buffers, and what keeps them in order.
  size_t footprint() const { return footprint_; }
  /// Packets kept.
  size_t packets() const { return packets_; }
  /// Upper bound on how much footprint() grows by a packet of `bytes` bytes at `offset`, with
  /// buffers of `buffer` bytes.
  size_t growth(uint64_t offset, size_t bytes, size_t buffer) const;
  /// Whether kMostNear packets wait in the grain of a range behind a gap. Such a range must come
  /// again later, because finding its place takes a step for each of these packets.
  bool isCrowded(uint64_t offset) const;
  /// Drops everything that is kept.
  void clear();

 private:
  using Page = StreamWindow::Page;
  static size_t grainOf(uint64_t offset) {
    return offset / StreamWindow::kGrain % StreamWindow::kPageGrains;
  }
  Page*& pageOf(uint64_t offset) const {
    return window_
        ->pages[offset / (StreamWindow::kGrain * StreamWindow::kPageGrains) % StreamWindow::kPages];
  }
  bool fitsLast(uint64_t offset, size_t bytes) const;
  void append(uint64_t offset, Packet packet);
  void hold(uint64_t offset, Packet packet);
  void drain(uint64_t from);
  Page*& takePage(uint64_t offset);
  void givePage(Page*& page);
  void giveWindow();
  void count(const Packet& packet, bool more);
  void drop(StreamChunk* chunk);

  ChunkPool* store_;
  StreamChain ready_;
  StreamWindow* window_ = nullptr;  ///< only while something waits behind a gap
  size_t held_ = 0;                 ///< chunks in window_
  uint64_t consumed_ = 0;
  uint64_t arrived_ = 0;
  uint64_t seen_ = 0;  ///< offset after the last byte that has arrived, with or without gaps
  std::optional<uint64_t> end_;
  size_t footprint_ = 0;
  size_t packets_ = 0;
};

}  // namespace braid
