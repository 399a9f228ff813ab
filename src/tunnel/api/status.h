#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ackshim/options.h"
#include "base/drop.h"
#include "base/field.h"
#include "base/time.h"
#include "tunnel/session/session_status.h"

namespace braid {

/// State of an uplink's meter.
struct MeterReading {
  uint64_t used = 0, cap = 0;
  bool closed = false;
};
template <>
inline constexpr auto kFieldsOf<MeterReading> = field::table<MeterReading>(
    field::gauge("used_bytes", FieldUnit::kBytes, "bytes carried in the present period",
                 &MeterReading::used),
    field::gauge("cap_bytes", FieldUnit::kBytes, "most bytes of a period", &MeterReading::cap),
    field::flag("closed", "the cap is reached: not used until the period ends",
                &MeterReading::closed));

/// Counts the bytes that an uplink carries, and closes it shortly before its cap is reached.
///
/// Packets in flight when an uplink closes still arrive, and the peer goes on sending until it
/// learns of the closing or falls silent. The meter therefore keeps a reserve (reserve()), so that
/// the cap is not exceeded. The uplink stays closed until reset() or setCap() makes room again.
class UplinkMeter {
 public:
  /// Covers what a peer may send while it probes the path until it forgets the session: a datagram
  /// a second for 180 s (docs/protocol.md section 10).
  static constexpr uint64_t kLeastReserve = 512 << 10;

  /// `cap`: bytes allowed in a period. `used`: those already used.
  UplinkMeter(uint64_t cap, uint64_t used) {
    reading_.cap = cap;
    reset(used);
  }

  /// Counts `bytes` carried in either direction. True when they close the uplink.
  bool add(uint64_t bytes, Time now);
  /// Begins a new period, of which `used` bytes are already used.
  void reset(uint64_t used);
  void setCap(uint64_t cap);
  const MeterReading& reading() const { return reading_; }
  bool closed() const { return reading_.closed; }
  uint64_t cap() const { return reading_.cap; }
  uint64_t used() const { return reading_.used; }
  /// Bytes kept in reserve now: kLeastReserve, plus two seconds at the rate of the busier one of
  /// the last and the present second.
  uint64_t reserve() const { return kLeastReserve + 2 * std::max(lastSecond_, thisSecond_); }

 private:
  bool isFull() const { return reading_.used + reserve() >= reading_.cap; }

  MeterReading reading_;
  Time second_ = Time::min();  // when thisSecond_ began
  uint64_t lastSecond_ = 0, thisSecond_ = 0;
};

/// Status of a peer and its session; without a session the session's fields keep their defaults.
struct PeerStatus : SessionStatus {
  std::string name;
  std::string pin;
  bool up = false;
  std::string group;
  bool inUse = true;
  uint64_t failedRenewals = 0;
  std::string refusal;
};
template <>
inline constexpr auto kFieldsOf<PeerStatus> = field::table<PeerStatus>(
    field::base<SessionStatus>(), field::text("name", "name of the peer", &PeerStatus::name),
    field::text("pin", "pin of its public key, `sha256:BASE64`", &PeerStatus::pin),
    field::flag("up", "it has a session that works", &PeerStatus::up),
    field::text("group", "peers of one group stand for each other; empty: none does",
                &PeerStatus::group),
    field::flag("in_use", "packets for its prefixes go to it, and not to another peer of its group",
                &PeerStatus::inUse),
    field::counter("failed_rekeys", FieldUnit::kNone,
                   "how often handshakes for fresh keys came to nothing",
                   &PeerStatus::failedRenewals),
    field::text("refusal", "why its last session was refused; empty: none was since it was up",
                &PeerStatus::refusal));

/// A metered uplink.
struct MeterStatus : MeterReading {
  std::string uplink;
};

/// Bytes that an uplink has carried in both directions, with UDP and IP headers: all of Braid's
/// datagrams.
struct UplinkBytes {
  std::string uplink;
  uint64_t bytes = 0;
};

/// Status of the ack shim (docs/ackshim.md).
struct ShimStatus {
  bool on = false;
  ShimCounters counters{};
  uint64_t flows = 0;
  uint64_t cachedPackets = 0;
};
template <>
inline constexpr auto kFieldsOf<ShimStatus> = field::table<ShimStatus>(
    field::flag("on", "it is switched on", &ShimStatus::on), field::inlined(&ShimStatus::counters),
    field::gauge("flows", FieldUnit::kNone, "TCP flows that are tracked", &ShimStatus::flows),
    field::gauge("cached_packets", FieldUnit::kPackets, "packets that are kept",
                 &ShimStatus::cachedPackets));

/// Maximum number of inner flows in an answer to the operator, of all peers together. Chosen
/// because a longer answer takes too long.
inline constexpr size_t kListedFlows = 1000;
/// How many of `flows` listed flows are taken from each of `peers` peers.
constexpr size_t flowShare(size_t flows, size_t peers) {
  size_t share = flows / (peers > 0 ? peers : 1);
  return flows > 0 && share == 0 ? 1 : share;
}

/// The load test that was requested last.
struct MeasureStatus {
  std::string peer, path;
  bool running = false;
  uint64_t sentBytes = 0;
  Duration left{};
};
template <>
inline constexpr auto kFieldsOf<MeasureStatus> = field::table<MeasureStatus>(
    field::text("peer", "peer with the paths that are measured; empty: none was",
                &MeasureStatus::peer),
    field::text("path", "the path; empty: all", &MeasureStatus::path),
    field::flag("running", "it goes on", &MeasureStatus::running),
    field::gauge("sent_bytes", FieldUnit::kBytes, "UDP payload sent for it",
                 &MeasureStatus::sentBytes),
    field::gauge("left_s", FieldUnit::kSeconds, "time left", &MeasureStatus::left));

struct TunnelStatus {
  std::vector<MeterStatus> meters;
  std::vector<PeerStatus> peers;
  ShimStatus shim;
  DropCounts drops{};
  uint64_t buffersInUse = 0, buffersLimit = 0;
  uint64_t buffersQueued = 0, buffersSent = 0, buffersHeld = 0;
  uint64_t memory = 0, memoryLimit = 0;
  uint64_t handshakes = 0;
};
template <>
inline constexpr auto kFieldsOf<TunnelStatus> = field::table<TunnelStatus>(
    field::unlisted(&TunnelStatus::meters),  // listed with the uplinks
    field::unlisted(&TunnelStatus::peers),   // listed separately, in the detail requested
    field::object("ack_shim", "the ack shim", &TunnelStatus::shim),
    field::object("drops", "what was dropped, by cause", &TunnelStatus::drops),
    field::gauge("buffers_in_use", FieldUnit::kNone, "packet buffers in use",
                 &TunnelStatus::buffersInUse),
    field::gauge("buffers_limit", FieldUnit::kNone, "packet buffers that there may be",
                 &TunnelStatus::buffersLimit),
    field::gauge("buffers_queued", FieldUnit::kNone,
                 "of those in use, packets that wait to be sent", &TunnelStatus::buffersQueued),
    field::gauge("buffers_sent", FieldUnit::kNone,
                 "of those in use, packets sent and not known delivered",
                 &TunnelStatus::buffersSent),
    field::gauge("buffers_held", FieldUnit::kNone, "of those in use, packets that wait for order",
                 &TunnelStatus::buffersHeld),
    field::gauge("memory_bytes", FieldUnit::kBytes,
                 "memory of all peers for what is kept to decode and to put packets in order",
                 &TunnelStatus::memory),
    field::gauge("memory_limit_bytes", FieldUnit::kBytes, "that there may be of it",
                 &TunnelStatus::memoryLimit),
    field::gauge("handshakes", FieldUnit::kNone,
                 "handshakes that peers began, those that have just ended included",
                 &TunnelStatus::handshakes));

inline bool UplinkMeter::add(uint64_t bytes, Time now) {
  if (second_ == Time::min() || now - second_ >= 1s) {
    lastSecond_ = second_ != Time::min() && now - second_ < 2s ? thisSecond_ : 0;
    thisSecond_ = 0;
    second_ = now;
  }
  thisSecond_ += bytes;
  reading_.used += bytes;
  if (reading_.closed || !isFull()) return false;
  return reading_.closed = true;
}

inline void UplinkMeter::reset(uint64_t used) {
  reading_.used = used;
  reading_.closed = isFull();
}

inline void UplinkMeter::setCap(uint64_t cap) {
  if (cap == reading_.cap) return;
  reading_.cap = cap;
  reading_.closed = isFull();
}

}  // namespace braid
