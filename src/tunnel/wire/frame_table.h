#pragma once

// The one table of frame types. These are made from it: WireFrame, the reader's choice of a parser,
// which frames are ack-eliciting, which are limited per datagram, and which are sent again. To add
// a frame, add a struct in frames.h and an entry here; the compiler then demands its parser
// (frame_table.cc) and what a session does with the frame.
//
// FrameReader reads the frames of a datagram (docs/protocol.md section 5).

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/name.h"
#include "tunnel/wire/frames.h"

namespace braid {

struct FrameFlags {
  bool eliciting = false;  ///< ack-eliciting (docs/protocol.md section 7)
  /// May cost a hundred look-ups: a receiver acts on at most kMaxCostlyFrames of a datagram.
  bool costly = false;
  bool symbol = false;   ///< is part of its datagram's symbol: decoding restores such frames only
  bool control = false;  ///< is sent again until it arrives
};

/// Properties that all frames of a type share.
struct FrameTraits : FrameFlags {
  uint8_t number;  ///< first byte on the wire: the type
  /// Equal to `number`; or the last type of a range of types that share these properties.
  uint8_t last;
  std::string_view name;  ///< as in docs/protocol.md section 5
  size_t largest;         ///< most bytes that we write, not counting the payload at the end of
                          ///< DATA, PARITY, PARITY_TAIL and STREAM
};

/// PADDING is a type byte and nothing else. Readers skip it, so it is not a WireFrame.
inline constexpr uint8_t kPaddingNumber = 0x00;

namespace frame_table {

template <typename F>
struct Entry {
  FrameTraits traits;
};
template <typename F>
constexpr Entry<F> entry(uint8_t number, std::string_view name, size_t largest,
                         FrameFlags flags = {}) {
  return {{flags, number, number, name, largest}};
}
/// The entry of the types F::kFirst to F::kLast.
template <typename F>
constexpr Entry<F> range(std::string_view name, size_t largest, FrameFlags flags = {}) {
  return {{flags, F::kFirst, F::kLast, name, largest}};
}

/// ACK: type, subflow, largest, delay, count; ranges and the gaps between them; ECN counts.
inline constexpr size_t kLargestAck = 1 + 1 + 8 + 8 + 1 + (2 * kMaxAckRanges - 1) * 8 + 3 * 8;
/// OPTIONAL: type, length, content.
inline constexpr size_t kLargestOptional = 1 + 2 + kMaxGrease;
/// PARITY: its fields of fixed size, and a group of one run for each symbol.
inline constexpr size_t kLargestParity = 10 + kMaxBlockSymbols * 7;

inline constexpr std::tuple kEntries{
    entry<PingFrame>(0x01, "PING", 1, {.eliciting = true}),
    entry<AckFrame>(0x02, "ACK", kLargestAck),
    entry<TimedAckFrame>(0x0f, "ACK_TIMED", kLargestAck + kReceiveTimeSize),
    entry<PathChallengeFrame>(0x03, "PATH_CHALLENGE", 9),
    entry<PathResponseFrame>(0x04, "PATH_RESPONSE", 9),
    entry<DataFrame>(0x05, "DATA", kDataFrameHeader, {.eliciting = true, .symbol = true}),
    entry<SkipFrame>(0x06, "SKIP", 13, {.eliciting = true, .control = true}),
    entry<SubflowStatusFrame>(0x07, "SUBFLOW_STATUS", 11, {.eliciting = true, .control = true}),
    entry<CloseFrame>(0x08, "CLOSE", 9),
    entry<ParityFrame>(0x09, "PARITY", kLargestParity, {.eliciting = true, .costly = true}),
    entry<ParityTailFrame>(0x0a, "PARITY_TAIL", kParityTailHeader, {.eliciting = true}),
    entry<RecoveredFrame>(0x0b, "RECOVERED", 12, {.costly = true}),
    entry<SubflowPreferenceFrame>(0x0c, "SUBFLOW_PREFERENCE", 21,
                                  {.eliciting = true, .control = true}),
    entry<RenewKeysFrame>(0x0d, "RENEW_KEYS", 5, {.eliciting = true, .control = true}),
    entry<KeysReadyFrame>(0x0e, "KEYS_READY", 6, {.eliciting = true, .control = true}),
    entry<ParamsFrame>(0x10, "PARAMS", 3 + kLargestParams, {.eliciting = true, .control = true}),
    entry<StreamCreditFrame>(0x11, "STREAM_CREDIT", 17, {.eliciting = true, .control = true}),
    entry<StreamResetFrame>(0x12, "STREAM_RESET", 17, {.eliciting = true, .control = true}),
    range<StreamFrame>("STREAM", kDataFrameHeader, {.eliciting = true, .symbol = true}),
    range<OptionalAskingFrame>("OPTIONAL_ASKING", kLargestOptional,
                               {.eliciting = true, .control = true}),
    entry<SubflowNameFrame>(0x60, "SUBFLOW_NAME", 1 + 2 + kLongestName),
    entry<ObservedAddressFrame>(0x61, "OBSERVED_ADDRESS", 1 + 2 + 16 + 2),
    range<OptionalFrame>("OPTIONAL", kLargestOptional),
};

template <typename... F>
std::variant<F...> anyOf(const std::tuple<Entry<F>...>&);
template <typename... F>
std::variant<F...> anyOf(const std::tuple<F*...>&);

template <typename F>
using IfControl =
    std::conditional_t<std::get<Entry<F>>(kEntries).traits.control, std::tuple<F*>, std::tuple<>>;
template <typename... F>
auto controlOf(const std::tuple<Entry<F>...>&)
    -> decltype(std::tuple_cat(std::declval<IfControl<F>>()...));

}  // namespace frame_table

/// A frame that was read: a variant of all types of the table, in its order.
using WireFrame = decltype(frame_table::anyOf(frame_table::kEntries));
/// A frame that is sent again until it arrives: a variant of all types with that flag.
using ControlFrame = decltype(frame_table::anyOf(frame_table::controlOf(frame_table::kEntries)));

/// The traits of a type of frame.
template <typename F>
inline constexpr const FrameTraits& kFrame =
    std::get<frame_table::Entry<F>>(frame_table::kEntries).traits;

/// The traits of all types, by WireFrame's index.
inline constexpr auto kFrameTraits = std::apply(
    [](const auto&... entries) { return std::array{entries.traits...}; }, frame_table::kEntries);

inline const FrameTraits& traitsOf(const WireFrame& frame) {
  return kFrameTraits[frame.index()];
}

/// Most bytes of a frame with that flag, payload not counted.
constexpr size_t largestFrame(bool FrameFlags::*flag) {
  size_t largest = 0;
  for (const FrameTraits& traits : kFrameTraits)
    if (traits.*flag) largest = std::max(largest, traits.largest);
  return largest;
}

namespace frame_table {
constexpr bool numbersDiffer() {
  for (size_t i = 0; i < kFrameTraits.size(); ++i) {
    if (kFrameTraits[i].number == kPaddingNumber) return false;
    if (kFrameTraits[i].last < kFrameTraits[i].number) return false;
    for (size_t j = 0; j < i; ++j) {
      const FrameTraits &a = kFrameTraits[i], &b = kFrameTraits[j];
      if (a.number <= b.last && b.number <= a.last) return false;
    }
  }
  return true;
}
static_assert(numbersDiffer());
}  // namespace frame_table

/// Reads the frames of an opened datagram one by one, skipping PADDING. Payloads are views into the
/// datagram.
class FrameReader {
 public:
  explicit FrameReader(ByteView frames) : reader_(frames) {}
  /// The next frame; nullopt at the end or at a malformed or unknown frame (then ok() is false).
  std::optional<WireFrame> next();
  bool ok() const { return ok_; }

 private:
  Reader reader_;
  bool ok_ = true;
};

}  // namespace braid
