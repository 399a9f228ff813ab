#pragma once

// The recovery trace: one event for each recovery decision, and one for the beginning and the end
// of each stream. Events are sent to a sink that the driver sets. Off by default: without a sink an
// event costs one test of a pointer.

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/header.h"

namespace braid {

/// Fields that are not listed for an event's kind are 0.
struct TraceEvent {
  enum class Kind : uint8_t {
    kPacketLost,  ///< subflow, pn; lossRate: after this loss
    kCopySent,    ///< subflow, pn: the protected packet; on, onPn: the copy
    /// block, k, m; subflow: of the first symbol; lossRate: L of the block's worst subflow
    kBlockStarted,
    kParitySent,       ///< block, index, k, m; on, onPn
    kParityReceived,   ///< block, index, k, m; on, onPn
    kBlockDecoded,     ///< block; subflow, pn: one packet that was recovered
    kPacketRecovered,  ///< subflow, pn: the peer reports that it decoded this packet
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

/// The beginning or the end of a stream, at one of its gateways.
struct StreamTrace {
  Time time{};
  uint32_t session = 0;
  StreamId stream{};
  bool isOwn = false;     ///< opened by this gateway, on behalf of a host of its side
  bool hasEnded = false;  ///< the stream has ended: the fields after `ends` are set
  StreamEnds ends{};
  uint64_t sentBytes = 0;      ///< sent by this gateway, each byte once
  uint64_t receivedBytes = 0;  ///< received in order
  Time begun{};
  Time firstByte = kNever;             ///< when the first byte came from the other side
  std::optional<StreamCause> cause{};  ///< nullopt: both directions came to their ends
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
  /// `sink` refers to a pointer that must outlive this object and may be set and cleared at any
  /// time. While it is null, nothing is noted.
  RecoveryTrace(TraceSink* const& sink, uint32_t session) : sink_(sink), session_(session) {}
  bool isOn() const { return sink_ != nullptr; }
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

inline const char* traceName(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::kPacketLost:
      return "recovery:packet_lost";
    case TraceEvent::Kind::kCopySent:
      return "recovery:copy_sent";
    case TraceEvent::Kind::kBlockStarted:
      return "recovery:block_started";
    case TraceEvent::Kind::kParitySent:
      return "recovery:parity_sent";
    case TraceEvent::Kind::kParityReceived:
      return "recovery:parity_received";
    case TraceEvent::Kind::kBlockDecoded:
      return "recovery:block_decoded";
    case TraceEvent::Kind::kPacketRecovered:
      return "recovery:packet_recovered";
  }
  return "?";
}

}  // namespace braid
