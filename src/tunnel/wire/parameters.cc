#include "tunnel/wire/parameters.h"

#include <array>
#include <optional>

namespace braid {

namespace {

/// An entry that is known: where its value is stored, and the values that are allowed.
struct KnownParam {
  ParamId id;
  uint64_t Params::*value;
  uint64_t least;
  bool ofStreams = false;  ///< is sent only by a side that supports streams
  bool optional = false;   ///< is not sent when it is 0
};
constexpr std::array kKnownParams{
    KnownParam{ParamId::kLargestDatagram, &Params::largestDatagram, Params::kMinDatagram},
    KnownParam{ParamId::kSymbols, &Params::symbols, 0},
    KnownParam{ParamId::kHeldSpan, &Params::heldSpan, 1},
    KnownParam{ParamId::kLanes, &Params::lanes, 0},
    KnownParam{ParamId::kStreams, &Params::streams, 0, true},
    KnownParam{ParamId::kStreamCredit, &Params::streamCredit, 0, true},
    KnownParam{ParamId::kReceiveTimes, &Params::receiveTimes, 0, false, true},
};

/// The meaningless entry has the id 31 N + 27, with N below this.
constexpr uint64_t kGreaseIds = 1 << 16;

void writeGreaseParam(Writer& out, uint64_t grease) {
  out.varint(31 * (grease % kGreaseIds) + 27);
  uint64_t size = grease / kGreaseIds % 8;
  out.varint(size);
  for (uint64_t i = 0; i < size; ++i) out.u8(static_cast<uint8_t>(grease >> (24 + 4 * i)));
}

// `value` must be one varint and nothing else.
bool readValue(ByteView value, const KnownParam& known, Params& params) {
  Reader in(value);
  uint64_t number = in.varint();
  if (!in.ok() || in.remaining() > 0 || number < known.least) return false;
  params.*known.value = number;
  return true;
}

}  // namespace

void writeParams(Writer& out, const Params& params, uint64_t grease) {
  for (const KnownParam& known : kKnownParams) {
    if (known.ofStreams && !params.hasStreams()) continue;
    if (known.optional && params.*known.value == 0) continue;
    out.varint(static_cast<uint64_t>(known.id));
    out.varint(varintSize(params.*known.value));
    out.varint(params.*known.value);
  }
  if (grease != 0) writeGreaseParam(out, grease);
}

bool readParams(ByteView entries, Params& params) {
  Reader in(entries);
  std::optional<uint64_t> before;
  while (in.remaining() > 0) {
    uint64_t id = in.varint();
    uint64_t size = in.varint();
    if (!in.ok() || size > in.remaining() || (before && id <= *before)) return false;
    before = id;
    ByteView value = in.take(size);
    for (const KnownParam& known : kKnownParams)
      if (static_cast<uint64_t>(known.id) == id && !readValue(value, known, params)) return false;
  }
  return in.ok();
}

}  // namespace braid
