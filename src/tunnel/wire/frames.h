#pragma once

// The frames inside a session datagram (docs/protocol.md section 5): what each one says, and how it
// is written. The frames of streams (section 13) are modeled on RFC 9000 section 19. The properties
// of frame types, and the reader of frames, are in frame_table.h.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/packet.h"
#include "coding/symbols.h"
#include "inet/addresses.h"
#include "scheduler/path/path_tiers.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/parameters.h"

namespace braid {

/// The two endpoints that a stream connects.
struct StreamEnds {
  Endpoint source;       ///< the client's address and port
  Endpoint destination;  ///< the server's; of the same address family
  auto operator<=>(const StreamEnds&) const = default;
};

/// The opening of a stream. It is in each STREAM frame until the stream's opener knows that the
/// other side has received one of them.
struct StreamOpening {
  StreamEnds ends;
  uint64_t credit = 0;  ///< bytes that the other side may send back before a STREAM_CREDIT
  /// The opener wants to know when the destination has accepted the connection. The answer is a
  /// STREAM_CREDIT, or what the destination sends.
  bool asks = false;
};

/// A range of a stream's bytes. Like a DATA frame it has kDataFrameHeader bytes before its payload.
/// The payload travels as a unit: stream, opening, bytes.
struct StreamFrame {
  static constexpr uint8_t kFirst = 0x14, kLast = 0x17;
  /// Bits of the type.
  static constexpr uint8_t kFin = 1, kOpen = 2;
  /// All offsets are below this one.
  static constexpr uint64_t kEnd = uint64_t{1} << 48;

  uint8_t type = kFirst;
  uint64_t offset = 0;  ///< of the first byte in the stream
  ByteView payload;     ///< the unit as on the wire, with `bytes` at its end
  StreamId stream{};
  std::optional<StreamOpening> opening;  ///< with kOpen
  ByteView bytes;                        ///< empty only with kFin or kOpen

  bool fin() const { return type & kFin; }
  /// Offset behind the last byte; with kFin the length of the stream.
  uint64_t end() const { return offset + bytes.size(); }
};

/// The receiver of this frame may send the stream's bytes up to the limit. The largest limit
/// counts.
struct StreamCreditFrame {
  StreamId stream{};
  uint64_t limit = 0;  ///< offset behind the last byte that may be sent
};

/// Why a stream ended before both directions were done. The values are the codes of a RESET frame
/// (docs/protocol.md); a code that this side does not know counts as kReset.
enum class StreamCause : uint8_t {
  kReset = 0,        ///< a host has reset its connection
  kRefused = 1,      ///< the destination refused the connection (RST in answer to SYN)
  kUnreachable = 2,  ///< no route to the destination, or an ICMP error said so
  kTimedOut = 3,     ///< the destination did not answer, or a host fell silent
  kLimit = 4,        ///< a bound on streams or memory is reached
  kGone = 5,         ///< the session with the peer ended, or had no path for too long
  /// The source does not belong to the peer, or the destination is not allowed for streams.
  kForbidden = 6,
};
inline constexpr size_t kStreamCauses = 7;

/// The stream ends at once, in both directions. What has not arrived is lost.
struct StreamResetFrame {
  StreamId stream{};
  uint64_t code = 0;  ///< StreamCause; an unknown one counts as StreamCause::kReset
};

/// Most bytes before the data of a stream's unit: stream, IP version, two IPv6 endpoints, credit.
inline constexpr size_t kLargestStreamPrefix = 8 + 1 + 2 * (16 + 2) + 8;

/// Reads an address, of 4 bytes or of 16, and a port. Of no family when there are too few bytes.
Endpoint takeEndpoint(Reader& in, bool isV4);
/// Writes what precedes the data in a unit. `opening`: nullptr for none.
void writeStreamPrefix(Writer& out, StreamId stream, const StreamOpening* opening);
/// Reads a unit, that is, what follows the header of the frame; type and offset of `frame` must be
/// set already. Returns false when the unit is malformed.
bool readStreamUnit(ByteView unit, StreamFrame& frame);
/// Writes type, offset and length, kDataFrameHeader bytes in all; the unit must follow.
void writeStreamHeader(uint8_t type, uint64_t offset, size_t length, uint8_t* out);
/// Cuts a well-formed unit of this type in two. The first part has at most `size` bytes and stays
/// in `unit`. The second part is written with the same prefix to `rest`, which must be an empty
/// packet; kFin then belongs to it. Returns how many bytes of the stream stay in the first part.
/// Returns 0 and changes nothing when the unit cannot be cut that way.
size_t cutStreamUnit(uint8_t type, Packet& unit, size_t size, Packet& rest);

void writeFrame(Writer& out, const StreamCreditFrame&);
void writeFrame(Writer& out, const StreamResetFrame&);

/// Bytes of a DATA frame before its payload: type, flow, DSN, length.
inline constexpr size_t kDataFrameHeader = 9;
/// Bytes that one inner packet costs in its own datagram, without UDP and IP headers.
inline constexpr size_t kDatagramOverhead = kHeaderSize + kDataFrameHeader + kTagSize;
/// Flow numbers below this one carry packets that are repaired until they arrive (TCP). Flow
/// numbers from here to kDatagramFlow carry ordered datagrams: the receiver waits only a short time
/// for missing ones (docs/protocol.md section 6).
inline constexpr FlowNumber kOrderedDatagramFlow(0x4000);
/// Flow numbers from here on carry timely datagrams.
inline constexpr FlowNumber kDatagramFlow(0x8000);
/// An ACK is sent at most this long after the ack-eliciting packet (docs/protocol.md section 7).
inline constexpr auto kMaxAckDelay = std::chrono::milliseconds(5);
/// Most ranges an ACK frame carries.
inline constexpr size_t kMaxAckRanges = 32;
/// Bytes of the receive time in an ACK_TIMED.
inline constexpr size_t kReceiveTimeSize = 4;
/// Most packets that one SKIP gives up.
inline constexpr uint64_t kMaxSkip = 4096;
/// PARITY_TAIL before its part: type, block, index, offset, length.
inline constexpr size_t kParityTailHeader = 8;
/// A receiver acts on at most this many costly frames (FrameFlags::costly) of one datagram, and a
/// sender packs at most this many (docs/protocol.md section 11).
inline constexpr size_t kMaxCostlyFrames = 16;

struct PingFrame {};
using PathToken = std::array<uint8_t, 8>;
struct PathChallengeFrame {
  PathToken token;
};
struct PathResponseFrame {
  PathToken token;
};
/// ECN counts of all packets received on a subflow (RFC 9000 section 19.3.2).
struct EcnCounts {
  uint64_t ect0 = 0, ect1 = 0, ce = 0;
};
/// When the largest packet that an ACK reports was received, by the receiver's own clock.
struct ReceiveTime {
  /// The time counts microseconds modulo this.
  static constexpr uint32_t kModulus = uint32_t{1} << 31;

  uint32_t micros = 0;  ///< below kModulus
  bool ofRun = false;   ///< the time is that of the first packet of a run, which this one is not
};
struct AckFrame {
  struct Range {
    PacketNumber first, last;  ///< inclusive
  };
  SubflowId subflow{};
  std::chrono::microseconds delay{};
  EcnCounts ecn;
  size_t count = 0;
  std::array<Range, kMaxAckRanges> ranges;  ///< from the largest down, disjoint, not adjacent
  std::optional<ReceiveTime> received;      ///< written as ACK_TIMED if there is one
};
/// An ACK with its receive time. Only a peer that asked for them gets such frames.
struct TimedAckFrame {
  AckFrame ack;
};
struct DataFrame {
  FlowNumber flow{};
  uint32_t dsn = 0;  ///< low 32 bits
  ByteView payload;
};
/// The sender has given up these packets of an ordered flow: they will not come (again).
struct SkipFrame {
  FlowNumber flow{};
  Dsn first{};
  uint64_t count = 0;  ///< 1..kMaxSkip
};
/// Whether the sender of this frame wants a subflow used; the largest sequence counts.
struct SubflowStatusFrame {
  SubflowId subflow{};
  uint64_t sequence = 0;
  bool available = true;
};
/// How the initiator wants the responder to use a subflow; the largest sequence counts.
struct SubflowPreferenceFrame {
  SubflowId subflow{};
  uint64_t sequence = 0;
  PathPreference preference{};  ///< within its ranges
};
struct CloseFrame {
  static constexpr uint64_t kStops = 0;  ///< the gateway stops
  /// The receiver of this frame has acknowledged packets that were never sent.
  static constexpr uint64_t kForgedAck = 1;
  uint64_t reason = kStops;
};
/// A parity of a coding block, or as much of it as fits this datagram (CoFUSO section 5.1).
struct ParityFrame {
  BlockId block{};
  uint8_t index = 0;        ///< below `parities`
  uint8_t parities = 0;     ///< M, 1..kMaxBlockParities
  uint16_t symbolSize = 0;  ///< bytes of the whole parity, at least 1
  ByteView symbols;  ///< which symbols, as on the wire, checked; describe() in frame_payloads.h
  ByteView part;     ///< the first bytes of the parity
};
/// The rest of a parity whose PARITY frame came before.
struct ParityTailFrame {
  BlockId block{};
  uint8_t index = 0;
  uint16_t offset = 0;
  ByteView part;
};
/// The data of these packets was restored by decoding and need not be sent again. Whether the
/// packets themselves were received is still decided by their subflow's ACKs.
struct RecoveredFrame {
  SubflowId subflow{};
  PacketNumber first{};
  uint64_t count = 0;  ///< 1..kMaxBlockSymbols
};

/// The initiator asks that the keys of this handshake, which was made beside the session, follow
/// the present ones.
struct RenewKeysFrame {
  uint32_t handshake = 0;  ///< SessionSecrets::sessionId of the handshake
};
/// The responder's answer to RENEW_KEYS.
struct KeysReadyFrame {
  uint32_t handshake = 0;
  bool ready = false;  ///< it has the keys; false: it does not know that handshake (any more)
};
/// What its sender is able to do, and its limits. The first one of a session counts.
struct ParamsFrame {
  Params params;
  uint64_t grease = 0;  ///< as written: see writeParams()
};
/// How the initiator calls the uplink of the subflow on which the frame comes. It has a type of the
/// range of OptionalFrame, so that a release that does not know it skips it.
struct SubflowNameFrame {
  std::string_view name;  ///< as isName() demands; empty: the content is not a name
};
/// Where the datagram with a challenge is sent: the receiver's own address and port as the sender
/// sees them. A release that does not know its type skips it, as above.
struct ObservedAddressFrame {
  Endpoint address;  ///< of no family: the content is not an address
};
/// Frames of types to which a later release may give a meaning. A receiver that does not know the
/// type skips the frame. The range of the type says whether the frame is ack-eliciting. This
/// release sends such frames without a meaning (GREASE).
struct OptionalFrame {
  static constexpr uint8_t kFirst = 0x62, kLast = 0x7f;
  uint8_t type = kFirst;
  uint16_t size = 0;  ///< bytes of content, which is ignored
};
struct OptionalAskingFrame {
  static constexpr uint8_t kFirst = 0x40, kLast = 0x5f;
  uint8_t type = kFirst;
  uint16_t size = 0;  ///< as above
};
/// Most bytes of content that are written in an optional frame.
inline constexpr uint16_t kMaxGrease = 15;

void writeFrame(Writer& out, const PingFrame&);
void writeFrame(Writer& out, const PathChallengeFrame&);
void writeFrame(Writer& out, const PathResponseFrame&);
void writeFrame(Writer& out, const SkipFrame&);
void writeFrame(Writer& out, const SubflowStatusFrame&);
void writeFrame(Writer& out, const CloseFrame&);
void writeFrame(Writer& out, const RecoveredFrame&);
void writeFrame(Writer& out, const SubflowPreferenceFrame&);
void writeFrame(Writer& out, const RenewKeysFrame&);
void writeFrame(Writer& out, const KeysReadyFrame&);
void writeFrame(Writer& out, const ParamsFrame&);
void writeFrame(Writer& out, const SubflowNameFrame&);
void writeFrame(Writer& out, const ObservedAddressFrame&);
/// Writes content without a meaning; `size` must be at most kMaxGrease.
void writeFrame(Writer& out, const OptionalFrame&);
void writeFrame(Writer& out, const OptionalAskingFrame&);
/// Writes as many of the largest ranges as fit. Writes nothing and returns false when not even one
/// fits. An ACK with a receive time is an ACK_TIMED.
bool writeFrame(Writer& out, const AckFrame&);
/// Writes a PARITY_TAIL up to and including the length of the part; the part must follow.
void writeParityTailHeader(Writer& out, const ParityTailFrame& tail);
/// Writes type, flow, DSN and length, kDataFrameHeader bytes in all; the payload must follow.
void writeDataHeader(FlowNumber flow, Dsn dsn, size_t length, uint8_t* out);

}  // namespace braid
