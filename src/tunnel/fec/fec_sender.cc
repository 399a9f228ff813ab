#include "tunnel/fec/fec_sender.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tunnel/queue/flow.h"
#include "tunnel/wire/frame_payloads.h"

namespace braid {

namespace {
/// The loss metric L (CoFUSO section 4.2.4) of the path that a block protects, the largest one if
/// it protects all paths.
double worstLoss(std::span<const RecoveryPath> paths, size_t of, const RecoveryOptions& options) {
  double worst = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    bool isOf = of == Protection::kAllPaths ? paths[i].uncoded > 0 : i == of;
    if (isOf) worst = std::max(worst, lossMetric(paths[i], options.alpha1, options.beta1));
  }
  return worst;
}
}  // namespace

ProtectionBlock* FecSender::find(uint8_t recoveryClass, const Flow* flow) const {
  for (const auto& block : blocks_) {
    if (block->left() > 0 && block->flow == flow && block->recoveryClass == recoveryClass)
      return block.get();
  }
  return nullptr;
}

size_t FecSender::paritiesLeft(uint8_t recoveryClass, const Flow* flow, Time now) {
  ProtectionBlock* block = find(recoveryClass, flow);
  if (!block) return 0;
  bool late = now - block->began > DataTracker::kTimely;
  if (late || !isWanted(*block)) block->next = block->description.parities;
  return block->left();
}

size_t FecSender::protectedPath(uint8_t recoveryClass, const Flow* flow) const {
  const ProtectionBlock* block = find(recoveryClass, flow);
  return block ? block->of : 0;
}

// Whether the peer may still lack a packet of the block. CoFUSO section 4.4 begins a new block when
// the last one has been ACKed.
bool FecSender::isWanted(const ProtectionBlock& block) const {
  const BlockDescription& d = block.description;
  for (size_t i = 0; i < d.rangeCount; ++i) {
    const Subflow& s = context_.subflows.at(SubflowId(d.ranges[i].subflow));
    for (uint64_t n = 0; n < d.ranges[i].count; ++n) {
      if (s.sender().flight().isDataMissing(PacketNumber(d.ranges[i].first + n))) return true;
    }
  }
  return false;
}

// A new block replaces that of the same flow, or else a finished one. Without either it gets a new
// entry, or replaces the oldest block when there are kOpenBlocks.
ProtectionBlock& FecSender::place(uint8_t recoveryClass, const Flow* flow) {
  if (ProtectionBlock* own = find(recoveryClass, flow)) return *own;
  auto over = std::ranges::find_if(blocks_, [](const auto& block) { return block->left() == 0; });
  if (over != blocks_.end()) return **over;
  if (blocks_.size() < kOpenBlocks)
    return *blocks_.emplace_back(std::make_unique<ProtectionBlock>(context_.pool.payload()));
  auto age = [&](const auto& block) -> uint32_t { return nextId_ - block->id(); };
  return **std::ranges::max_element(blocks_, {}, age);
}

bool FecSender::start(uint8_t recoveryClass, const Flow* flow, const Protection& choice,
                      std::span<const RecoveryPath> paths, Time now) {
  ProtectionBlock& block = place(recoveryClass, flow);
  block.encoder.begin();
  block.next = 0;
  block.began = now;
  block.flow = flow;
  block.recoveryClass = recoveryClass;
  BlockDescription& d = block.description;
  d.rangeCount = 0;
  d.block = (nextId_++).value();
  gather(block, choice);
  size_t k = block.encoder.symbols();
  d.parities =
      static_cast<uint8_t>(k == 0 ? 0 : std::clamp<size_t>(choice.parities, 1, kMaxBlockParities));
  d.symbolSize = static_cast<uint16_t>(block.encoder.symbolSize());
  if (k == 0) return false;
  ++begun_;
  context_.trace.note({.kind = TraceEvent::Kind::kBlockStarted,
                       .time = now,
                       .subflow = SubflowId(d.ranges[0].subflow),
                       .k = static_cast<uint8_t>(k),
                       .m = d.parities,
                       .block = block.id(),
                       .lossRate = worstLoss(paths, choice.of, context_.recovery)});
  return true;
}

// Adds the oldest packets of each protected path to the block, path by path.
void FecSender::gather(ProtectionBlock& block, const Protection& choice) {
  SubflowSet& subflows = context_.subflows;
  size_t most = std::min({choice.symbols, context_.recovery.kMax, size_t{mostSymbols_}});
  size_t largest = 0;
  for (size_t i = 0; i < subflows.size(); ++i) {
    if (choice.of != Protection::kAllPaths && choice.of != i) continue;
    size_t before = block.encoder.symbols();
    gatherFrom(i, block, most, choice);
    size_t share = block.encoder.symbols() - before;
    if (share <= largest) continue;
    largest = share;
    block.of = i;
  }
}

void FecSender::gatherFrom(size_t position, ProtectionBlock& block, size_t most,
                           const Protection& choice) {
  Subflow& of = context_.subflows[position];
  const Subflow& on = context_.subflows[choice.on];
  if (block.flow) {
    for (UnitRef d = block.flow->sent.oldest(); d && block.encoder.symbols() < most;
         d = SentData::newer(*d)) {
      if (d->subflow == of.id() && !d->isLost()) addSymbol(block, of, on, d->pn);
    }
    return;
  }
  ProtectionCursors& marks = marks_[position];
  const SentPackets& sent = of.sender().sent();
  for (PacketNumber pn = marks.firstUncoded(sent, block.recoveryClass);
       pn < sent.next() && block.encoder.symbols() < most && sent.at(pn).sentAt <= choice.sentUntil;
       pn = marks.firstUncoded(sent, block.recoveryClass, pn + 1))
    addSymbol(block, of, on, pn);
}

bool FecSender::addSymbol(ProtectionBlock& block, Subflow& of, const Subflow& on, PacketNumber pn) {
  if (!ProtectionCursors::isCodable(of.sender().sent(), pn)) return false;
  const SentPacket& packet = of.sender().sent().at(pn);
  for (size_t i = 0; i < packet.dataCount; ++i) {
    if (!context_.dataTracker.isTooLate(*packet.data[i], block.began)) continue;
    context_.dataTracker.forbidCoding(packet.data[i]);
    return false;
  }
  std::array<std::array<uint8_t, kDataFrameHeader>, kMaxDataPerDatagram> headers;
  std::array<ByteView, 2 * kMaxDataPerDatagram> pieces;
  for (size_t i = 0; i < packet.dataCount; ++i) {
    const DataUnit& d = *packet.data[i];
    writeUnitHeader(d, headers[i].data());
    pieces[2 * i] = headers[i];
    pieces[2 * i + 1] = d.packet.view();
  }
  if (!block.encoder.add({pieces.data(), size_t{2} * packet.dataCount})) return false;
  for (size_t i = 0; i < packet.dataCount; ++i)
    context_.dataTracker.onCoded(packet.data[i], block.began + answerTime(of, on));
  of.sender().tally().onProtected();
  BlockDescription& d = block.description;
  SymbolRange* last = d.rangeCount > 0 ? &d.ranges[d.rangeCount - 1] : nullptr;
  if (last && last->subflow == of.id().value() && last->first + last->count == pn.value()) {
    ++last->count;
  } else {
    d.ranges[d.rangeCount++] = {of.id().value(), pn.value(), 1};
  }
  return true;
}

bool FecSender::sendParity(uint8_t recoveryClass, const Flow* flow, Subflow& on, Datagram& out,
                           Time now) {
  ProtectionBlock* block = find(recoveryClass, flow);
  if (!block) return false;
  const BlockDescription& d = block->description;
  size_t room = frameRoom(on.mtu().current());
  size_t header = parityHeaderSize(d);
  size_t index = block->next++;
  if (header > std::min(room, kMaxParityHeader) ||
      d.symbolSize > room - header + room - kParityTailHeader || !tail_.bytes.empty())
    return false;
  Packet buffer = context_.pool.allocate();
  if (!buffer) return false;
  ByteView parity = block->encoder.parity(index);
  DatagramBuilder build(on, std::move(buffer));
  size_t part = std::min<size_t>(parity.size(), room - header);
  build.reserve(part + header);
  build.addAck(now);
  build.addParity(d, index, parity.first(part));
  if (part < parity.size()) {
    tail_.block = block->id();
    tail_.index = static_cast<uint8_t>(index);
    tail_.subflow = on.id();
    tail_.offset = static_cast<uint16_t>(part);
    tail_.bytes.assign(parity.begin() + static_cast<ptrdiff_t>(part), parity.end());
  }
  on.sender().tally().onParitySent(build.used());
  context_.trace.note({.kind = TraceEvent::Kind::kParitySent,
                       .time = now,
                       .on = on.id(),
                       .index = static_cast<uint8_t>(index),
                       .k = static_cast<uint8_t>(block->encoder.symbols()),
                       .m = d.parities,
                       .block = block->id(),
                       .onPn = build.packetNumber()});
  return build.finish(context_.sealer, out, now);
}

// The tail is dropped when it cannot be sent; the first part of the parity is then worthless.
bool FecSender::pollTail(Datagram& out, Time now) {
  if (tail_.bytes.empty()) return false;
  Subflow& s = context_.subflows.at(tail_.subflow);
  if (!s.usable() || !s.sender().canNumber() ||
      tail_.bytes.size() + kParityTailHeader > frameRoom(s.mtu().current())) {
    tail_.bytes.clear();
    return false;
  }
  Packet buffer = context_.pool.allocate();
  if (!buffer) return false;
  DatagramBuilder build(s, std::move(buffer));
  build.addParityTail({tail_.block, tail_.index, tail_.offset, tail_.bytes});
  s.sender().tally().onTailSent(build.used());
  bool sent = build.finish(context_.sealer, out, now);
  tail_.bytes.clear();
  return sent;
}

}  // namespace braid
