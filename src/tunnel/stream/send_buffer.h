#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/queue/flow.h"
#include "tunnel/stream/chunks.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// The send side of one direction of a stream: the bytes that were written and are not sent yet.
/// The bytes lie in units in the form in which they will be sent, each with its prefix. The last
/// unit takes more bytes until it is full or was offered to the DRR scheduler.
///
/// Invariants. Bytes are sent in order, each once; what becomes of them then is up to the data
/// tracker. Once the end is written, a unit carries it.
class SendBuffer {
 public:
  /// How to make a unit.
  struct Make {
    PacketPool& pool;
    size_t unit;  ///< bytes of a unit, prefix included: more than the longest prefix
    StreamId stream;
    const StreamOpening* opening;  ///< nullptr when the other side knows the stream
  };

  /// `store` must outlive it.
  explicit SendBuffer(ChunkPool& store) : store_(&store) {}
  ~SendBuffer() { clear(); }
  SendBuffer(const SendBuffer&) = delete;
  SendBuffer& operator=(const SendBuffer&) = delete;

  // ---- writing; all but room() return by how many bytes the units grow, prefixes included

  /// Adds a unit without bytes. 0 when no buffer is free.
  size_t begin(const Make& make) { return push(make) ? chain_.last->packet.size() : 0; }
  /// Copies bytes as long as there are buffers. Afterwards `bytes` is what is left.
  size_t write(ByteView& bytes, const Make& make);
  /// Provides buffers for at most `most` bytes, valid until the next call. Returns how many of
  /// `buffers` are set.
  size_t room(size_t most, std::span<ByteSpan> buffers, const Make& make);
  /// Adds `bytes` bytes that were filled into room(), which ends with that. `unit`: as in room().
  size_t commit(size_t bytes, size_t unit);
  /// Ends the stream: nothing follows. If isFinished() is still false, there was no buffer to say
  /// it in: call it again.
  size_t finish(const Make& make);

  // ---- sending

  /// The next unit, which does not change until it is handed out; nullptr when there is none. If it
  /// is larger than the units that `make` allows, it is cut if there is a buffer; then `grown` is
  /// raised by the size of the second prefix.
  const Packet* prepare(UnitRange& range, const Make& make, size_t& grown);
  /// Cuts the unit that prepare() has returned. False when no buffer is free or it cannot be cut.
  bool cut(UnitRange& range, const Make& make, size_t& grown);
  /// Hands out the unit that prepare() has returned.
  Packet handOut();
  /// Drops everything that is not sent yet.
  void clear();

  /// Bytes of the stream that are not sent yet.
  size_t waiting() const { return static_cast<size_t>(end_ - left_); }
  /// Buffers that wait.
  size_t packets() const { return packets_; }
  /// Offset after the last byte that was written.
  uint64_t end() const { return end_; }
  /// The end is written: nothing more can be.
  bool isFinished() const { return finished_; }
  /// The end is written and everything is sent.
  bool hasLeft() const { return finished_ && chain_.empty(); }

 private:
  bool push(const Make& make);
  StreamChunk* make(const Make& make, uint64_t offset);
  size_t roomInLast(size_t unit) const;
  size_t take(StreamChunk& chunk, size_t bytes, size_t unit);
  void release();

  ChunkPool* store_;
  StreamChain chain_;   ///< units that wait
  StreamChain spare_;   ///< of room(), with nothing but their prefix
  bool shown_ = false;  ///< the first unit was offered and does not change
  bool finished_ = false;
  uint64_t left_ = 0;  ///< offset after what was sent
  uint64_t end_ = 0;
  size_t packets_ = 0;
};

}  // namespace braid
