#include "tunnel/protect/block_receiver.h"

#include <algorithm>
#include <utility>

#include "tunnel/lane/data_ledger.h"
#include "tunnel/wire/frame_traits.h"
#include "tunnel/wire/parity_symbols.h"

namespace braid {

namespace {
/// Room that is asked for a RECOVERED frame, bytes. Ours.
constexpr size_t kRecoveredRoom = 20;
/// Between two looks at the paths for how long symbols are kept. Ours.
constexpr Duration kPathsAge = 100ms;
/// How long after a symbol a parity may come that names it: what a block has is un-ACKed when the block begins, which is
/// true for a round trip and the delay of an ACK; the block's parities leave within DataLedger::kTimely of that, and one
/// may take a slower path than the symbol did. Ours: a round trip more than that, and half a second at least, for the
/// round trip of a path on which this side only receives may be an old one.
constexpr Duration parityDelay(Duration srtt, Duration rttvar) {
  return std::max<Duration>(3 * srtt + 8 * rttvar + DataLedger::kTimely, 500ms);
}
static_assert(kFrame<RecoveredFrame>.largest <= kRecoveredRoom);

DecoderOptions decoderOptions(const ProtectOptions& options, size_t symbolCapacity) {
  DecoderOptions decoder;
  decoder.symbolCapacity = symbolCapacity;
  decoder.packets = options.decodeBuffer;
  decoder.uncoded = BlockReceiver::kUncoded;
  decoder.memory = options.decodeMemory;
  return decoder;
}
}  // namespace

BlockReceiver::BlockReceiver(const ProtectOptions& options, size_t symbolCapacity, const SubflowSet& subflows,
                             const RecoveryTrace& trace)
    : options_(options),
      subflows_(subflows),
      trace_(trace),
      decoder_(decoderOptions(options, symbolCapacity)) {}

void BlockReceiver::onSymbol(SubflowId subflow, PacketNumber pn, std::span<const ByteView> pieces, Time now) {
  if (options_.decodeBuffer == 0) return;
  if (now >= nextPaths_) lookAtPaths(now);
  decoder_.onSymbol(subflow.value(), pn.value(), pieces, now);
}

void BlockReceiver::lookAtPaths(Time now) {
  nextPaths_ = now + kPathsAge;
  Duration longest{};
  for (const Subflow* s : subflows_) {
    if (!s->usable()) continue;
    PathView path = s->view(now);
    longest = std::max(longest, parityDelay(path.srtt, path.rttvar));
  }
  if (longest > 0s) decoder_.keepFor(longest);
}

bool BlockReceiver::onParity(const ParityFrame& frame, SubflowId on, PacketNumber pn, Time now) {
  ++parities_;
  if (options_.decodeBuffer == 0) return true;
  BlockDescription block = describe(frame, [this](SubflowId subflow) {
    const Subflow* s = subflows_.find(subflow);
    return s ? s->receiver().expected() : PacketNumber{};
  });
  if (decoder_.onParity(block, frame.index, frame.part) == BlockDecoder::Verdict::kBad) return false;
  if (!options_.trace) return true;  // counting the symbols would cost
  trace_.note({.kind = TraceEvent::Kind::kParityReceived,
               .time = now,
               .on = on,
               .index = frame.index,
               .k = static_cast<uint8_t>(block.symbols()),
               .m = frame.parities,
               .block = frame.block,
               .onPn = pn});
  return true;
}

bool BlockReceiver::onTail(const ParityTailFrame& frame) {
  if (options_.decodeBuffer == 0) return true;
  return decoder_.onTail(frame.block.value(), frame.index, frame.offset, frame.part) !=
         BlockDecoder::Verdict::kBad;
}

void BlockReceiver::onTimer(Time now) {
  if (now < nextLook_) return;
  nextLook_ = now + kIdle;
  bool isIdle = decoder_.symbols() == std::exchange(seenSymbols_, decoder_.symbols());
  bool isUncoded = parities_ == std::exchange(seenParities_, parities_);
  uncodedLooks_ = isUncoded ? uncodedLooks_ + 1 : 0;
  if (isIdle && isUncoded) {
    decoder_.release();
  } else if (uncodedLooks_ == kUncodedLooks) {
    decoder_.slacken();
  }
}

void BlockReceiver::onTaken(const BlockDecoder::Restored& restored, bool whole, Time now) {
  SubflowId subflow(restored.subflow);
  PacketNumber pn(restored.pn);
  if (whole) tell(subflow, pn);
  trace_.note({.kind = TraceEvent::Kind::kBlockDecoded,
               .time = now,
               .subflow = subflow,
               .block = BlockId(restored.block),
               .pn = pn});
}

void BlockReceiver::tell(SubflowId subflow, PacketNumber pn) {
  if (!recovered_.empty()) {
    RecoveredFrame& last = recovered_.back();
    if (last.subflow == subflow && last.first + last.count == pn && last.count < kMaxBlockSymbols) {
      ++last.count;
      return;
    }
  }
  if (recovered_.size() < kMaxRecovered) recovered_.push_back({subflow, pn, 1});
}

void BlockReceiver::write(DatagramBuilder& build) {
  for (size_t i = 0; i < kMaxCostlyFrames && !recovered_.empty(); ++i) {
    if (!build.fitsControl(kRecoveredRoom)) return;
    build.add(recovered_.back());
    recovered_.pop_back();
  }
}

}  // namespace braid
