#pragma once

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/time.h"
#include "tunnel/lane/flow.h"
#include "tunnel/lane/stream_assembly.h"
#include "tunnel/lane/stream_io.h"
#include "tunnel/lane/stream_source.h"

namespace braid {

class StreamLane;

/// A stream, as one of its two ends sees it: what it sends is a flow among others, what it gets an assembly. The stream
/// lane and its parts alone write it.
class Stream final : public Flow {
 public:
  Stream(StreamLane& lane, Lane& asLane, StreamStore& store, StreamId id, const StreamOpening& opening,
         bool isOwn, Time now)
      : Flow(asLane, keyOf(opening.ends, isOwn)),
        lane_(lane),
        id_(id),
        opening_(opening),
        source_(store),
        assembly_(store),
        begun_(now),
        granted_(now),
        isOwn_(isOwn),
        isKnown_(!isOwn) {}

  StreamLane& of() const { return lane_; }
  StreamId id() const { return id_; }
  const StreamEnds& ends() const { return opening_.ends; }
  StreamHandle handle() const { return handle_; }
  /// This side has opened it.
  bool isOwn() const { return isOwn_; }
  Time begun() const { return begun_; }
  /// When the first byte came from the other side; kNever before that.
  Time firstByte() const { return firstByte_; }
  const StreamSource& source() const { return source_; }
  const StreamAssembly& assembly() const { return assembly_; }

 private:
  friend class StreamLane;
  friend class StreamSending;
  friend class StreamHoldings;

  static FlowKey keyOf(const StreamEnds& ends, bool isOwn) {
    constexpr uint8_t kTcp = 6;
    FlowKey key{ends.source.address.family,
                kTcp,
                ends.source.port,
                ends.destination.port,
                ends.source.address.bytes,
                ends.destination.address.bytes};
    return isOwn ? key : key.reversed();
  }

  StreamLane& lane_;
  const StreamId id_;
  StreamOpening opening_;
  StreamHandle handle_;
  StreamSource source_;
  StreamAssembly assembly_;
  uint64_t sendLimit_ = 0;   ///< offset up to which the other side takes bytes
  uint64_t creditLimit_ = 0;  ///< and this one
  size_t window_ = 0;        ///< bytes by which that is ahead of what was read
  size_t heldBytes_ = 0, heldPackets_ = 0;  ///< of the assembly, as StreamHoldings counts them
  Time begun_;
  Time granted_;              ///< when the window was last moved on
  Time firstByte_ = kNever;
  Time lastWrite_ = Time::min();
  bool isOwn_;
  bool isKnown_;               ///< the other side has the stream, too
  bool waits_ = false;         ///< the driver waits until it may write more
  bool finishes_ = false;      ///< the driver has written all
  bool isLooked_ = false;      ///< in the lane's list of those to look at
  bool owesCredit_ = false;    ///< in the list of those whose credit is to be said
  bool isStarved_ = false;     ///< in the list of those that wait for a buffer
  uint8_t lagClass_ = 0;       ///< of StreamHoldings
  ListLink<Stream> byLook_, byCredit_, byHunger_, byLag_;
};

}  // namespace braid
