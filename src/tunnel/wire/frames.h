#pragma once

// The frames inside a session datagram (docs/protocol.md section 5): what each one says, and how it is
// written. What holds of a type of frame as such is in frame_traits.h; frame_reader.h reads frames.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "coding/block.h"
#include "scheduler/path/path_tiers.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/numbers.h"
#include "tunnel/wire/params.h"

namespace braid {

/// DATA frame before its payload: type, flow, DSN, length.
inline constexpr size_t kDataFrameHeader = 9;
/// What one inner packet costs in its own datagram, UDP and IP not counted.
inline constexpr size_t kDatagramOverhead = kHeaderSize + kDataFrameHeader + kTagSize;
/// Flow numbers below this one carry what is repaired until it arrives (TCP); from here on datagrams that are kept in
/// order with little patience.
inline constexpr FlowNumber kOrderedDatagramFlow(0x4000);
/// Flow numbers from here on carry timely datagrams.
inline constexpr FlowNumber kDatagramFlow(0x8000);
/// An ACK is sent at the latest so long after the packet that asks for it (docs/protocol.md section 7).
inline constexpr auto kMaxAckDelay = std::chrono::milliseconds(5);
/// Most ranges an ACK frame carries.
inline constexpr size_t kMaxAckRanges = 32;
/// Most packets that one SKIP gives up.
inline constexpr uint64_t kMaxSkip = 4096;
/// PARITY_TAIL before its part: type, block, index, offset, length.
inline constexpr size_t kParityTailHeader = 8;
/// Costly frames (FrameTraits::costly) of one datagram that a receiver acts on, and a sender packs at most
/// (docs/protocol.md section 11).
inline constexpr size_t kMaxCostlyFrames = 16;

struct PingFrame {};
using PathToken = std::array<uint8_t, 8>;
struct PathChallengeFrame {
  PathToken token;
};
struct PathResponseFrame {
  PathToken token;
};
/// ECN counts of the packets received on a subflow so far (RFC 9000 section 19.3.2).
struct EcnCounts {
  uint64_t ect0 = 0, ect1 = 0, ce = 0;
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
};
struct DataFrame {
  FlowNumber flow{};
  uint32_t dsn = 0;  ///< low 32 bits
  ByteView payload;
};
/// The sender gave up these packets of an ordered flow: they will not come (again).
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
  static constexpr uint64_t kStops = 0;      ///< the daemon does
  static constexpr uint64_t kForgedAck = 1;  ///< the receiver of this has acknowledged what was never sent
  uint64_t reason = kStops;
};
/// A parity of a coding block, or as much of it as fits this datagram (CoFUSO section 5.1).
struct ParityFrame {
  BlockId block{};
  uint8_t index = 0;        ///< below `parities`
  uint8_t parities = 0;     ///< M, 1..kMaxBlockParities
  uint16_t symbolSize = 0;  ///< bytes of the whole parity, at least 1
  ByteView symbols;         ///< which symbols, as on the wire and checked: describe() in parity_symbols.h
  ByteView part;            ///< the first bytes of the parity
};
/// The rest of a parity whose PARITY frame came before.
struct ParityTailFrame {
  BlockId block{};
  uint8_t index = 0;
  uint16_t offset = 0;
  ByteView part;
};
/// The data of these packets came by decoding: they need not be sent again. The packets still count as what
/// their subflow's ACKs say.
struct RecoveredFrame {
  SubflowId subflow{};
  PacketNumber first{};
  uint64_t count = 0;  ///< 1..kMaxBlockSymbols
};

/// The initiator wants the keys of this handshake, beside the session, to follow the present ones.
struct RenewKeysFrame {
  uint32_t handshake = 0;  ///< SessionSecrets::sessionId of the handshake
};
/// The responder's answer.
struct KeysReadyFrame {
  uint32_t handshake = 0;
  bool ready = false;  ///< it has them; false: it does not know that handshake (any more)
};
/// What its sender can and takes; the first one of a session counts.
struct ParamsFrame {
  Params params;
  uint64_t grease = 0;  ///< as written: see writeParams()
};
/// Frames of types that a later release may give a meaning: whoever does not know it goes on behind them. The range
/// of its type says whether such a frame asks for an ACK. This release sends them without a meaning (GREASE).
struct OptionalFrame {
  static constexpr uint8_t kFirst = 0x60, kLast = 0x7f;
  uint8_t type = kFirst;
  uint16_t size = 0;  ///< bytes of content, which is not looked at
};
struct OptionalAskingFrame {
  static constexpr uint8_t kFirst = 0x40, kLast = 0x5f;
  uint8_t type = kFirst;
  uint16_t size = 0;  ///< as above
};
/// Most bytes of content that are written in an optional frame. Ours.
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
/// The content is noise; `size` is at most kMaxGrease.
void writeFrame(Writer& out, const OptionalFrame&);
void writeFrame(Writer& out, const OptionalAskingFrame&);
/// Writes as many of the largest ranges as fit (at least one, else nothing and false).
bool writeFrame(Writer& out, const AckFrame&);
/// PARITY_TAIL up to and with the length of the part, which follows.
void writeParityTailHeader(Writer& out, const ParityTailFrame& tail);
/// Type, flow, DSN and length, kDataFrameHeader bytes in all; the payload follows.
void writeDataHeader(FlowNumber flow, Dsn dsn, size_t length, uint8_t* out);

}  // namespace braid
