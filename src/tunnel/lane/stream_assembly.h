#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/lane/stream_store.h"

namespace braid {

/// One direction of a stream at its receiver: puts ranges that come in any order, overlapping or twice, into the order of
/// the stream, and keeps them until they are read. Packets are kept as they came; small ones in order are put together.
///
/// Invariants. What is readable is one chain without a gap, from consumed() to arrived(). Everything else begins
/// behind arrived(), less than StreamWindow::kSpan behind consumed(): that is for the caller to see to, by the credit
/// that it gives. The work for a packet grows with its bytes and with what it makes readable; of what is kept it looks at
/// kMostNear packets at most.
class StreamAssembly {
 public:
  /// Packets that wait in a grain of the window at most. A grain is 1 KB, so there are more only where each carries less
  /// than 8 bytes, or where a hostile peer sends bytes again and again. Ours.
  static constexpr size_t kMostNear = 128;

  /// `store` must outlive it.
  explicit StreamAssembly(StreamStore& store) : store_(&store) {}
  ~StreamAssembly() { clear(); }
  StreamAssembly(const StreamAssembly&) = delete;
  StreamAssembly& operator=(const StreamAssembly&) = delete;

  /// Whether a range, which may say that it is the last, agrees with what is known of the stream's end.
  bool agrees(uint64_t end, bool isLast) const {
    return end_ ? end <= *end_ && (!isLast || end == *end_) : !isLast || end >= seen_;
  }
  /// Takes a range; empty ones say nothing but where the end is.
  void add(uint64_t offset, Packet packet, bool isLast);

  /// Bytes that can be read now.
  size_t readable() const { return static_cast<size_t>(arrived_ - consumed_); }
  /// The next of them, in order, in as many pieces as there are views.
  size_t peek(std::span<ByteView> views) const;
  /// So many bytes, at most readable(), are read.
  void consume(size_t bytes);
  /// All bytes are read, and the end has come.
  bool isAtEnd() const { return end_ == consumed_; }
  /// All bytes have come.
  bool isWhole() const { return end_ == arrived_; }

  /// Offset behind what was read, and behind what came without a gap before it.
  uint64_t consumed() const { return consumed_; }
  uint64_t arrived() const { return arrived_; }
  /// Bytes of memory that packets take, whole buffers, and what keeps them in order.
  size_t footprint() const { return footprint_; }
  /// Packets kept.
  size_t packets() const { return packets_; }
  /// Bytes of memory that a packet of so many bytes there would take in addition, at most: with buffers of `buffer` bytes.
  size_t growth(uint64_t offset, size_t bytes, size_t buffer) const;
  /// Whether kMostNear packets wait near a range behind a gap. It is to come again later then: to find its place takes a
  /// step for each of them.
  bool isCrowded(uint64_t offset) const;
  /// Throws away all that is kept.
  void clear();

 private:
  using Page = StreamWindow::Page;
  static size_t grainOf(uint64_t offset) { return offset / StreamWindow::kGrain % StreamWindow::kPageGrains; }
  Page*& pageOf(uint64_t offset) const {
    return window_->pages[offset / (StreamWindow::kGrain * StreamWindow::kPageGrains) % StreamWindow::kPages];
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

  StreamStore* store_;
  StreamChain ready_;
  StreamWindow* window_ = nullptr;  ///< while something waits behind a gap
  size_t held_ = 0;                 ///< chunks there
  uint64_t consumed_ = 0;
  uint64_t arrived_ = 0;
  uint64_t seen_ = 0;  ///< offset behind the last byte that came at all
  std::optional<uint64_t> end_;
  size_t footprint_ = 0;
  size_t packets_ = 0;
};

}  // namespace braid
