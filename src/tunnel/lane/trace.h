#pragma once

// The recovery trace: one event for each decision, and for the begin and end of each stream, for a sink that the driver
// sets. Off by default: without a sink an event costs one test of a pointer.

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "tunnel/lane/stream_io.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// Fields that an event's kind does not name are 0.
struct TraceEvent {
  enum class Kind : uint8_t {
    kPacketLost,       ///< subflow, pn; lossRate after it
    kCopySent,         ///< subflow, pn: the packet that is protected; on, onPn: the copy
    kBlockStarted,     ///< block, k, m, subflow: the first symbol's; lossRate: L of its worst subflow
    kParitySent,       ///< block, index, k, m; on, onPn
    kParityReceived,   ///< block, index, k, m; on, onPn
    kBlockDecoded,     ///< block, subflow, pn: one packet that was given back
    kPacketRecovered,  ///< subflow, pn: the peer says that it has been decoded there
  };
  Kind kind{};
  Time time{};
  uint32_t session = 0;
  SubflowId subflow{};
  SubflowId on{};
  uint8_t index = 0;
  uint8_t k = 0;
  uint8_t m = 0;
  BlockId block{};
  PacketNumber pn{};
  PacketNumber onPn{};
  double lossRate = 0;
};

/// Name in the style of qlog, for example "recovery:parity_sent".
const char* traceName(TraceEvent::Kind kind);

/// The begin or the end of a stream, at one of its gateways.
struct StreamTrace {
  Time time{};
  uint32_t session = 0;
  StreamId stream{};
  bool isOwn = false;     ///< opened by this gateway, for a host of its side
  bool hasEnded = false;  ///< what follows the ends holds
  StreamEnds ends{};
  uint64_t sentBytes = 0;      ///< by this gateway, each byte once
  uint64_t receivedBytes = 0;  ///< in order
  Time begun{};
  Time firstByte = kNever;             ///< when the first byte came from the other side
  std::optional<StreamCause> cause{};  ///< without one both ways came to their ends
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void onTrace(const TraceEvent& event) = 0;
  virtual void onStream(const StreamTrace& event) = 0;
};

/// Where one session notes its events.
class RecoveryTrace {
 public:
  /// `sink` must outlive it, and may be set and taken away meanwhile; a null sink: nothing is noted.
  RecoveryTrace(TraceSink* const& sink, uint32_t session) : sink_(sink), session_(session) {}
  void note(const TraceEvent& event) const {
    if (!sink_) return;
    TraceEvent whole = event;
    whole.session = session_;
    sink_->onTrace(whole);
  }
  void note(StreamTrace event) const {
    if (!sink_) return;
    event.session = session_;
    sink_->onStream(event);
  }

 private:
  TraceSink* const& sink_;
  uint32_t session_;
};

}  // namespace braid
