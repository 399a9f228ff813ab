#pragma once

// The recovery trace: one event for each decision, for a sink that the driver sets. Off by default: without a
// sink an event costs one test of a pointer.

#include <cstdint>

#include "base/time.h"
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

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void onTrace(const TraceEvent& event) = 0;
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

 private:
  TraceSink* const& sink_;
  uint32_t session_;
};

}  // namespace braid
