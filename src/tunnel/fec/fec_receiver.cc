#include "tunnel/fec/fec_receiver.h"

#include <algorithm>
#include <utility>

#include "tunnel/queue/data_tracker.h"
#include "tunnel/wire/frame_payloads.h"
#include "tunnel/wire/frame_table.h"

namespace braid {

namespace {
/// Bytes of room that a datagram must have for a RECOVERED frame.
constexpr size_t kRecoveredRoom = 20;
/// Interval at which the paths are looked at to decide how long symbols are kept.
constexpr Duration kPathsAge = 100ms;
/// How long after a symbol a parity that names it may arrive. A block is made of packets that are
/// un-ACKed when it begins: for a round trip and the ACK delay after they were sent. Its parities
/// are sent within DataTracker::kTimely of that, and a parity may take a slower path than the
/// symbol. Chosen: one round trip more than that, and at least 500 ms, because the RTT of a path on
/// which this side only receives may be an old one.
constexpr Duration parityDelay(Duration srtt, Duration rttvar) {
  return std::max<Duration>(3 * srtt + 8 * rttvar + DataTracker::kTimely, 500ms);
}
static_assert(kFrame<RecoveredFrame>.largest <= kRecoveredRoom);

DecoderOptions decoderOptions(const ProtectOptions& options, size_t symbolCapacity,
                              MemoryQuota* memory) {
  DecoderOptions decoder;
  decoder.symbolCapacity = symbolCapacity;
  decoder.packets = options.decodeBuffer;
  decoder.uncoded = FecReceiver::kUncoded;
  decoder.memory = memory;
  return decoder;
}
}  // namespace

FecReceiver::FecReceiver(const ProtectOptions& options, size_t symbolCapacity,
                         const SubflowSet& subflows, const RecoveryTrace& trace,
                         MemoryQuota* memory)
    : options_(options),
      subflows_(subflows),
      trace_(trace),
      decoder_(decoderOptions(options, symbolCapacity, memory)) {}

void FecReceiver::onSymbol(SubflowId subflow, PacketNumber pn, std::span<const ByteView> pieces,
                           Time now) {
  if (options_.decodeBuffer == 0) return;
  if (now >= nextPaths_) lookAtPaths(now);
  decoder_.onSymbol(subflow.value(), pn.value(), pieces, now);
}

void FecReceiver::lookAtPaths(Time now) {
  nextPaths_ = now + kPathsAge;
  Duration longest{};
  for (const Subflow* s : subflows_) {
    if (!s->usable()) continue;
    PathView path = s->view(now);
    longest = std::max(longest, parityDelay(path.srtt, path.rttvar));
  }
  if (longest > 0s) decoder_.keepFor(longest);
}

bool FecReceiver::onParity(const ParityFrame& frame, SubflowId on, PacketNumber pn, Time now) {
  ++parities_;
  if (options_.decodeBuffer == 0) return true;
  BlockDescription block = describe(frame, [this](SubflowId subflow) {
    const Subflow* s = subflows_.find(subflow);
    return s ? s->receiver().expected() : PacketNumber{};
  });
  if (decoder_.onParity(block, frame.index, frame.part) == BlockDecoder::Verdict::kBad)
    return false;
  if (!trace_.isOn()) return true;  // counting the symbols takes time
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

bool FecReceiver::onTail(const ParityTailFrame& frame) {
  if (options_.decodeBuffer == 0) return true;
  return decoder_.onTail(frame.block.value(), frame.index, frame.offset, frame.part) !=
         BlockDecoder::Verdict::kBad;
}

void FecReceiver::onTimer(Time now) {
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

void FecReceiver::onTaken(const BlockDecoder::Restored& restored, bool whole, Time now) {
  SubflowId subflow(restored.subflow);
  PacketNumber pn(restored.pn);
  if (whole) tell(subflow, pn);
  trace_.note({.kind = TraceEvent::Kind::kBlockDecoded,
               .time = now,
               .subflow = subflow,
               .block = BlockId(restored.block),
               .pn = pn});
}

void FecReceiver::tell(SubflowId subflow, PacketNumber pn) {
  if (!recovered_.empty()) {
    RecoveredFrame& last = recovered_.back();
    if (last.subflow == subflow && last.first + last.count == pn && last.count < kMaxBlockSymbols) {
      ++last.count;
      return;
    }
  }
  if (recovered_.size() < kMaxRecovered) recovered_.push_back({subflow, pn, 1});
}

void FecReceiver::write(DatagramBuilder& build) {
  for (size_t i = 0; i < kMaxCostlyFrames && !recovered_.empty(); ++i) {
    if (!build.fitsControl(kRecoveredRoom)) return;
    build.add(recovered_.back());
    recovered_.pop_back();
  }
}

}  // namespace braid
