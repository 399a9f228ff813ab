#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/lane/flow.h"
#include "tunnel/lane/stream_store.h"
#include "tunnel/wire/stream_frames.h"

namespace braid {

/// One direction of a stream at its sender: the bytes that were written and have not left. They lie in units as they
/// will travel, each with its prefix; the last one takes more bytes until it is full or shown to the round.
///
/// Invariants. Bytes leave in order, each once (what becomes of them then is the ledger's). With the end written there is
/// a unit that says so.
class StreamSource {
 public:
  /// What a unit is made of.
  struct Make {
    PacketPool& pool;
    size_t unit;  ///< bytes of a unit, prefix included
    StreamId stream;
    const StreamOpening* opening;  ///< nullptr: the other side knows the stream
  };

  /// `store` must outlive it.
  explicit StreamSource(StreamStore& store) : store_(&store) {}
  ~StreamSource() { clear(); }
  StreamSource(const StreamSource&) = delete;
  StreamSource& operator=(const StreamSource&) = delete;

  // ---- what is written; each gives the bytes that units have grown by, prefixes included

  /// A unit without bytes. 0: there is no buffer.
  size_t begin(const Make& make) { return push(make) ? chain_.last->packet.size() : 0; }
  /// Copies bytes, as many as there are buffers for: `bytes` is what is left of them.
  size_t write(ByteView& bytes, const Make& make);
  /// Buffers for `most` bytes at most; returns how many of `buffers` are set. They stay until the next call.
  size_t room(size_t most, std::span<ByteSpan> buffers, const Make& make);
  /// So many bytes were filled into room(), which ends with that. `unit`: as it was then.
  size_t commit(size_t bytes, size_t unit);
  /// Nothing follows. While it is not isFinished() there was no buffer to say it in: to be called again.
  size_t finish(const Make& make);

  // ---- what leaves

  /// The next unit, which stays as it is until it is handed out; nullptr when there is none. One that is larger than
  /// the units that are made now is cut, if there is a buffer: `grown` by another prefix then.
  const Packet* prepare(UnitRange& range, const Make& make, size_t& grown);
  /// Cuts the unit that is shown, as prepare() does. False: there is no buffer.
  bool cut(UnitRange& range, const Make& make, size_t& grown);
  /// The unit that was shown.
  Packet handOut();
  /// Throws away everything that has not left.
  void clear();

  /// Bytes of the stream that have not left.
  size_t waiting() const { return static_cast<size_t>(end_ - left_); }
  /// Buffers that wait.
  size_t packets() const { return packets_; }
  /// Offset behind the last byte that was written.
  uint64_t end() const { return end_; }
  /// Nothing can be written any more.
  bool isFinished() const { return finished_; }
  /// And everything has left.
  bool hasLeft() const { return finished_ && chain_.empty(); }

 private:
  bool push(const Make& make);
  StreamChunk* make(const Make& make, uint64_t offset);
  size_t roomInLast(size_t unit) const;
  size_t take(StreamChunk& chunk, size_t bytes, size_t unit);
  void release();

  StreamStore* store_;
  StreamChain chain_;   ///< units that wait
  StreamChain spare_;   ///< of room(), with nothing but their prefix
  bool shown_ = false;  ///< the first one is ready and stays as it is
  bool finished_ = false;
  uint64_t left_ = 0;  ///< offset behind what has left
  uint64_t end_ = 0;
  size_t packets_ = 0;
};

}  // namespace braid
