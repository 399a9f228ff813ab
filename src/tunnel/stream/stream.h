#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/containers.h"
#include "base/memory_quota.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/flow.h"
#include "tunnel/queue/options.h"
#include "tunnel/stream/reassembler.h"
#include "tunnel/stream/send_buffer.h"
#include "tunnel/stream/stream_io.h"

namespace braid {

class SessionStreams;

/// A stream as one of its two ends sees it. What it sends is a flow among others; what it receives
/// is in a Reassembler. Only the stream lane and its parts write it.
class Stream final : public Flow {
 public:
  Stream(SessionStreams& lane, Lane& asLane, ChunkPool& store, StreamId id,
         const StreamOpening& opening, bool isOwn, Time now)
      : Flow(asLane, keyOf(opening.ends, isOwn)),
        lane_(lane),
        id_(id),
        opening_(opening),
        source_(store),
        assembly_(store),
        begun_(now),
        granted_(now),
        lastByte_(now),
        isOwn_(isOwn),
        isKnown_(!isOwn),
        isUnanswered_(opening.asks) {}

  SessionStreams& of() const { return lane_; }
  StreamId id() const { return id_; }
  const StreamEnds& ends() const { return opening_.ends; }
  StreamHandle handle() const { return handle_; }
  /// Whether this side has opened it.
  bool isOwn() const { return isOwn_; }
  Time begun() const { return begun_; }
  /// When the first byte arrived from the other side; kNever before that.
  Time firstByte() const { return firstByte_; }
  const SendBuffer& source() const { return source_; }
  const Reassembler& assembly() const { return assembly_; }

 private:
  friend class SessionStreams;
  friend class StreamSendSide;
  friend class ReceiveMemory;

  static FlowKey keyOf(const StreamEnds& ends, bool isOwn) {
    constexpr uint8_t kTcp = 6;
    FlowKey key{ends.source.address.family, kTcp,
                ends.source.port,           ends.destination.port,
                ends.source.address.bytes,  ends.destination.address.bytes};
    return isOwn ? key : key.reversed();
  }

  SessionStreams& lane_;
  const StreamId id_;
  StreamOpening opening_;
  StreamHandle handle_;
  SendBuffer source_;
  Reassembler assembly_;
  uint64_t sendLimit_ = 0;                  ///< offset up to which the other side accepts bytes
  uint64_t creditLimit_ = 0;                ///< offset up to which this side accepts bytes
  size_t window_ = 0;                       ///< receive window: bytes granted beyond what was read
  size_t heldBytes_ = 0, heldPackets_ = 0;  ///< of assembly_, as ReceiveMemory counted them
  Time begun_;
  Time granted_;  ///< when creditLimit_ was last raised
  Time firstByte_ = kNever;
  Time lastByte_;  ///< when a byte last arrived; the beginning before that
  Time lastWrite_ = Time::min();
  bool isOwn_;
  bool isKnown_;  ///< the other side knows the stream, too
  /// The opener has asked whether the destination accepts, and the answer has not come (at the
  /// opener), or is not given yet (at the other side).
  bool isUnanswered_;
  bool waits_ = false;       ///< the driver waits until it may write more
  bool finishes_ = false;    ///< the driver has written all
  bool isToCheck_ = false;   ///< in StreamSendSide's list of streams to check
  bool owesCredit_ = false;  ///< in the list of streams with a credit to announce
  bool isStarved_ = false;   ///< in the list of streams that wait for a buffer
  uint8_t lagClass_ = 0;     ///< owner: ReceiveMemory
  ListLink<Stream> byCheck_, byCredit_, byHunger_, byLag_;
};

/// The memory that the streams of a session take for their readers, and which stream has the most
/// unread bytes. Each step takes the same time, however many streams there are.
///
/// In-order data may use all memory; out-of-order data must leave 1/kReserve free. Otherwise it
/// could fill the memory and block the very bytes it waits for.
class ReceiveMemory {
 public:
  /// `options`, `pool` and `memory`, the quota of all peers, must outlive the object. `reclaim`:
  /// resets the stream that mostUnread() returns, if any. It is called when another session needs
  /// memory and this one holds most of it.
  ReceiveMemory(const StreamOptions& options, PacketPool& pool, MemoryQuota* memory,
                const std::function<void()>& reclaim)
      : options_(options),
        shared_(memory, reclaim),
        buffers_(&pool.quota(PacketUse::kHeld), reclaim) {}

  /// Bytes of memory: whole buffers, and what keeps them in order.
  size_t bytes() const { return bytes_; }
  /// Whether more than half of the memory is in use: the credit of the peer is to grow slowly.
  bool isShort() const { return bytes_ > options_.heldBytes / 2; }
  /// Whether there is room for `more` bytes of in-order data: at most one buffer and its
  /// bookkeeping.
  bool takesNext(size_t more) {
    return bytes_ + more <= options_.heldBytes &&
           shared_.makeRoom(more, CallbackQuotaUser::Reserve::kAll) &&
           buffers_.makeRoom(1, CallbackQuotaUser::Reserve::kAll);
  }
  /// Whether there is room for `more` bytes of out-of-order data; otherwise like takesNext().
  bool takesEarly(size_t more) {
    return bytes_ + more <= options_.heldBytes - options_.heldBytes / kReserve &&
           shared_.makeRoom(more) && buffers_.makeRoom(1);
  }
  /// The stream holds more or less than at the last call.
  void onChange(Stream& stream);
  /// The stream with the most unread bytes, or nearly so; nullptr when none has any.
  Stream* mostUnread() const;

 private:
  /// 1/kReserve of the bound of this peer is reserved for in-order data.
  static constexpr size_t kReserve = 8;
  /// Classes of streams by unread bytes: none, less than 2 KB, less than 4 KB, ...
  static constexpr size_t kClasses = 24;
  static size_t classOf(size_t bytes) {
    return bytes == 0 ? 0 : std::min<size_t>(std::bit_width(bytes >> 11) + size_t{1}, kClasses - 1);
  }

  const StreamOptions& options_;
  CallbackQuotaUser shared_;
  CallbackQuotaUser buffers_;
  size_t bytes_ = 0;
  size_t packets_ = 0;
  /// By class; list 0 is not used.
  std::array<IntrusiveList<Stream, &Stream::byLag_>, kClasses> byLag_;
};

inline void ReceiveMemory::onChange(Stream& stream) {
  const Reassembler& assembly = stream.assembly_;
  bytes_ += assembly.footprint() - std::exchange(stream.heldBytes_, assembly.footprint());
  packets_ += assembly.packets() - std::exchange(stream.heldPackets_, assembly.packets());
  shared_.setUsed(bytes_);
  buffers_.setUsed(packets_);
  size_t now = classOf(assembly.readable());
  size_t before = std::exchange(stream.lagClass_, static_cast<uint8_t>(now));
  if (now == before) return;
  if (before > 0) byLag_[before].erase(stream);
  if (now > 0) byLag_[now].pushBack(stream);
}

inline Stream* ReceiveMemory::mostUnread() const {
  for (size_t i = kClasses - 1; i > 0; --i)
    if (!byLag_[i].empty()) return byLag_[i].front();
  return nullptr;
}

}  // namespace braid
