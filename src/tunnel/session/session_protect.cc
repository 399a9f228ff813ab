// Proactive recovery (FUSO, CoFUSO): asks the policy, builds copies and parities. Both promises are kept here
// for every policy: protection goes when nothing new waits, or in the turn of the flow that it is for; and
// only on a path whose window is open.

#include <algorithm>

#include "tunnel/session/session.h"
#include "tunnel/wire/parity_symbols.h"

namespace braid {

namespace {
/// Packets that a flow may be ahead of the oldest that is missing: half of what the receiver holds. Ours.
constexpr uint64_t kReceiveWindow = Resequencer::kSpan / 2;
/// Un-ACKed packets of a flow that are looked at in its turn: some short bursts. Ours.
constexpr size_t kMostOfAFlow = 256;
/// Second sendings that may wait. Ours: beyond it the oldest is dropped.
constexpr size_t kMaxDuplicates = 1024;
/// Choices of a policy in a row that come to nothing. Ours.
constexpr size_t kChoices = 4;
/// The description of a block that a PARITY frame can hold beside an ACK. Ours.
constexpr size_t kMaxParityHeader = 600;

/// When the peer's word on protection sent now should be here. Not later than the own path would tell of a
/// loss (RFC 9002 section 6.1.2), lest a slow path holds repairs up.
Duration answerTime(const Subflow& of, const Subflow& on) {
  return std::min(of.rtt().smoothed(), on.rtt().smoothed()) * 9 / 8;
}

/// L (CoFUSO section 4.2.4) of the path that a block is to protect; of several the largest.
double worstLoss(std::span<const RecoveryPath> paths, size_t of, const RecoveryOptions& options) {
  double worst = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    bool isOf = of == Protection::kAllPaths ? paths[i].uncoded > 0 : i == of;
    if (isOf) worst = std::max(worst, lossMetric(paths[i], options.alpha1, options.beta1));
  }
  return worst;
}
}  // namespace

void Session::setPolicies() {
  policies_.clear();
  policies_.push_back(makeRecoveryPolicy(options_.recovery, options_.recoveryOptions, random_.next()));
  for (const RecoveryClass& c : options_.recoveryClasses) {
    if (policies_.size() <= kMaxRecoveryClasses)
      policies_.push_back(makeRecoveryPolicy(c.policy, options_.recoveryOptions, random_.next()));
  }
  flows_.limitClasses(policies_.size());
}

// A short flow that has sent its last packet may protect it in its next turn.
void Session::onNewData(const Datum* datum) {
  Flow& flow = *datum->flow;
  const RecoveryPolicy& policy = policyOf(flow.recoveryClass());
  if (policy.duplication() != Duplication::kNone) duplicate(datum);
  // MPTCP's opportunistic retransmission (Raiciu et al., NSDI 2012): what holds a full receive window back
  // goes over another path.
  const Datum* oldest = flow.sent.oldest();
  if (flow.reliable() && datum->dsn - oldest->dsn >= kReceiveWindow && !oldest->copied) duplicate(oldest);
  bool takesTurn = policy.takesTurns() && flow.burst.ended() && flow.queue.empty() && flow.burst.isShort();
  if (takesTurn) flows_.claim(flow);
  lastEnded_ = flow.burst.ended() && !takesTurn;
}

void Session::duplicate(const Datum* datum) {
  ledger_.hold(datum);
  duplicates_.pushBack(std::move(datum));
  if (duplicates_.size() <= kMaxDuplicates) return;
  ledger_.forget(duplicates_.front());
  duplicates_.popFront();
}

// The second sending of a duplicating policy, at once and on its own terms: it waits for its path as the
// first one did, but holds nothing else up.
bool Session::pollDuplicate(Datagram& out, Time now) {
  while (!duplicates_.empty()) {
    const Datum* datum = duplicates_.front();
    Subflow* path = nullptr;
    bool wanted = !datum->done && !datum->queued && !datum->copied && !ledger_.isTooLate(*datum, now);
    if (wanted) {
      bool same = policyOf(datum->flow->recoveryClass()).duplication() == Duplication::kSamePath;
      size_t candidates = 0;
      for (Subflow* s : subflows_) {
        if (!s->takesData() || (s->id() == datum->subflow) != same) continue;
        if (!fits(datum->packet.size(), *s)) continue;
        ++candidates;
        if (s->isOpen(now) && (!path || s->rtt().smoothed() < path->rtt().smoothed())) path = s;
      }
      wanted = candidates > 0;
      if (wanted && !path) return false;
    }
    bool sent = false;
    if (wanted) {
      Packet buffer = pool_.allocate();
      if (!buffer) return false;
      DatagramBuilder build(*path, std::move(buffer));
      build.addCopy(datum);
      Subflow& of = subflows_.at(datum->subflow);
      if (!datum->coded) of.tally().onProtected();
      sent = finishCopy(build, of, datum->pn, out, now);
    }
    ledger_.forget(datum);
    duplicates_.popFront();
    if (sent) return true;
  }
  return false;
}

// The rest of a parity goes where its head went, beyond the window by that much: the head is worth nothing
// without it.
bool Session::pollTail(Datagram& out, Time now) {
  if (tail_.bytes.empty()) return false;
  Subflow& s = subflows_.at(tail_.subflow);
  if (!s.usable() || !s.canNumber() || tail_.bytes.size() + kParityTailHeader > frameRoom(s.mtu())) {
    tail_.bytes.clear();
    return false;
  }
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(s, std::move(buffer));
  build.addParityTail({tail_.block, tail_.index, tail_.offset, tail_.bytes});
  s.tally().onTailSent(build.used());
  bool sent = build.finish(sealer_, out, now);
  tail_.bytes.clear();
  return sent;
}

bool Session::pollProtection(Datagram& out, Time now) {
  protectAt_ = kNever;
  if (flows_.packets() > 0 || ledger_.live() == 0) return false;
  for (uint8_t c = 0; c < policies_.size(); ++c) {
    if (protect(c, nullptr, out, now)) return true;
  }
  return false;
}

// False while no path is open; then the turn stays.
bool Session::pollTurn(Flow& flow, Datagram& out, Time now) {
  bool anyOpen = std::any_of(subflows_.begin(), subflows_.end(), [&](Subflow* s) { return s->isOpen(now); });
  if (!anyOpen && anyUsable()) return false;
  bool sent = flow.sent.oldest() && protect(flow.recoveryClass(), &flow, out, now);
  flows_.endTurn(sent ? out.bytes.size() : 0, sent);
  return sent;
}

bool Session::protect(uint8_t recoveryClass, Flow* flow, Datagram& out, Time now) {
  RecoveryPolicy& policy = policyOf(recoveryClass);
  for (size_t tries = 0; tries < kChoices; ++tries) {
    RecoveryView view = look(recoveryClass, flow, now);
    Time begin = policy.notBefore(view);
    if (begin > now) {
      if (!flow) protectAt_ = std::min(protectAt_, begin);
      return false;
    }
    countUnacked(recoveryClass, flow);
    std::optional<Protection> choice = policy.choose(view);
    if (!choice || choice->on >= subflows_.size() || !subflows_[choice->on].isOpen(now)) {
      if (!flow) askAgain(policy, now);
      return false;
    }
    Subflow& on = subflows_[choice->on];
    switch (choice->kind) {
      case Protection::Kind::kCopy:
      case Protection::Kind::kNewest:
        if (sendCopy(recoveryClass, flow, *choice, out, now)) return true;
        break;
      case Protection::Kind::kNewBlock:
        if (startBlock(recoveryClass, flow, *choice, now) &&
            sendParity(*blockOf(recoveryClass, flow), on, out, now))
          return true;
        break;
      case Protection::Kind::kNextParity:
        if (ProtectionBlock* block = blockOf(recoveryClass, flow)) {
          if (sendParity(*block, on, out, now)) return true;
        }
        break;
    }
  }
  return false;
}

// When the policy says so; or, while something is unprotected and no path is open, when one opens.
void Session::askAgain(const RecoveryPolicy& policy, Time now) {
  Time again = policy.nextDeadline();
  Time opens = kNever;
  bool isUnprotected = false;
  for (const RecoveryPath& path : recoveryPaths_) {
    opens = std::min(opens, path.opensAt);
    isUnprotected |= path.uncopied > 0;
  }
  if (isUnprotected && opens > now) again = std::min(again, opens);
  protectAt_ = std::min(protectAt_, again);
}

// ---- what the policy sees

RecoveryView Session::look(uint8_t recoveryClass, Flow* flow, Time now) {
  RecoveryView view;
  view.now = now;
  view.chance = flow ? RecoveryChance::kTurn : RecoveryChance::kIdle;
  view.ended = flow ? flow->burst.ended() : lastEnded_;
  recoveryPaths_.resize(subflows_.size());
  size_t largest = 0;
  for (size_t i = 0; i < subflows_.size(); ++i) {
    recoveryPaths_[i] = recoveryPath(subflows_[i], marks_[i].lastSent(recoveryClass), now);
    if (recoveryPaths_[i].usable) largest = std::max(largest, subflows_[i].mtu());
  }
  // Two datagrams must hold what was one elsewhere.
  for (size_t i = 0; i < subflows_.size(); ++i) {
    if (2 * subflows_[i].mtu() >= largest + kMaxParityHeader) continue;
    recoveryPaths_[i].open = false;
    recoveryPaths_[i].opensAt = kNever;
  }
  view.paths = recoveryPaths_;
  if (ProtectionBlock* block = blockOf(recoveryClass, flow)) {
    bool late = now - block->began > DataLedger::kTimely;
    if (late || !isWanted(*block)) block->next = block->description.parities;
    view.paritiesLeft = block->left();
  }
  return view;
}

// Whether the peer may still lack a packet of the block (CoFUSO section 4.4: a new block when the last one
// has been ACKed).
bool Session::isWanted(const ProtectionBlock& block) {
  const BlockDescription& d = block.description;
  for (size_t i = 0; i < d.rangeCount; ++i) {
    const Subflow& s = subflows_.at(d.ranges[i].subflow);
    for (uint64_t n = 0; n < d.ranges[i].count; ++n) {
      if (s.isDataMissing(d.ranges[i].first + n)) return true;
    }
  }
  return false;
}

// Of all flows of the class, or of that one.
void Session::countUnacked(uint8_t recoveryClass, const Flow* flow) {
  for (size_t i = 0; !flow && i < subflows_.size(); ++i) {
    marks_[i].countUnacked(subflows_[i].sent(), recoveryPaths_[i], recoveryClass,
                           options_.recoveryOptions.kMax);
  }
  size_t left = kMostOfAFlow;
  for (const Datum* d = flow ? flow->sent.oldest() : nullptr; d && left > 0;
       d = SentData::newer(*d), --left) {
    if (d->queued || d->moved) continue;
    size_t i = subflows_.positionOf(d->subflow);
    recoveryPaths_[i].uncopied += !d->copied;
    recoveryPaths_[i].uncoded += ProtectionMarks::isCodable(subflows_[i].sent(), d->pn);
  }
}

// ---- copies

bool Session::sendCopy(uint8_t recoveryClass, Flow* flow, const Protection& protection, Datagram& out,
                       Time now) {
  if (protection.of >= subflows_.size()) return false;
  Subflow& of = subflows_[protection.of];
  Subflow& on = subflows_[protection.on];
  bool newest = protection.kind == Protection::Kind::kNewest;
  ProtectionMarks& marks = marks_[protection.of];
  uint64_t pn = newest               ? ProtectionMarks::newestUnacked(of.sent(), recoveryClass)
                : protection.uncoded ? marks.firstUncoded(of.sent(), recoveryClass)
                                     : marks.firstUncopied(of.sent(), recoveryClass);
  if (flow) {
    const Datum* d = flow->sent.oldest();
    auto skip = [&](const Datum& x) { return x.copied || x.queued || (x.coded && protection.uncoded); };
    while (d && (skip(*d) || d->subflow != of.id())) d = SentData::newer(*d);
    if (!d) return false;
    pn = d->pn;
  }
  if (pn == of.sent().next()) return false;
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(on, std::move(buffer));
  const SentPacket& packet = of.sent().at(pn);
  bool first = true;  // that it is protected
  for (size_t i = 0; i < packet.dataCount; ++i) {
    const Datum* d = packet.data[i];
    first &= !d->copied && !d->coded;
    if (d->done || d->queued || (d->copied && !newest) || (d->coded && protection.uncoded)) continue;
    if (d->flow->recoveryClass() != recoveryClass) continue;
    if (!ledger_.isTooLate(*d, now) && build.fits(d->packet.size())) {
      build.addCopy(d);
    } else {
      ledger_.refuseCopy(d);
    }
  }
  if (build.data().empty()) return false;
  if (first) of.tally().onProtected();
  return finishCopy(build, of, pn, out, now);
}

/// It holds copies of what went in datagram `pn` of `of`.
bool Session::finishCopy(DatagramBuilder& build, Subflow& of, uint64_t pn, Datagram& out, Time now) {
  Subflow& on = build.subflow();
  for (const Datum* datum : build.data()) ledger_.onCopied(datum, now + answerTime(of, on));
  build.addAck(now);
  on.tally().onCopySent(build.used());
  trace({.kind = TraceEvent::Kind::kCopySent,
         .time = now,
         .subflow = of.id(),
         .on = on.id(),
         .pn = pn,
         .onPn = build.packetNumber()});
  return build.finish(sealer_, out, now);
}

// ---- parities

ProtectionBlock* Session::blockOf(uint8_t recoveryClass, const Flow* flow) {
  for (ProtectionBlock& block : blocks_) {
    if (block.left() > 0 && block.flow == flow && block.recoveryClass == recoveryClass) return &block;
  }
  return nullptr;
}

// False when it has no symbols. A block takes the place of the same flow's, of a finished one, or of the
// oldest.
bool Session::startBlock(uint8_t recoveryClass, Flow* flow, const Protection& protection, Time now) {
  if (blocks_.empty()) {
    for (size_t i = 0; i < kOpenBlocks; ++i) blocks_.emplace_back(pool_.payload());
  }
  ProtectionBlock* block = blockOf(recoveryClass, flow);
  if (!block) {
    auto age = [&](const ProtectionBlock& b) -> uint32_t {
      return b.left() == 0 ? UINT32_MAX : static_cast<uint16_t>(nextBlock_ - b.description.block);
    };
    block = &*std::max_element(blocks_.begin(), blocks_.end(),
                               [&](const auto& a, const auto& b) { return age(a) < age(b); });
  }
  block->encoder.begin();
  block->next = 0;
  block->began = now;
  block->flow = flow;
  block->recoveryClass = recoveryClass;
  BlockDescription& d = block->description;
  d.rangeCount = 0;
  d.block = nextBlock_++;
  gather(*block, recoveryClass, flow, protection);
  size_t k = block->encoder.symbols();
  d.parities =
      static_cast<uint8_t>(k == 0 ? 0 : std::clamp<size_t>(protection.parities, 1, kMaxBlockParities));
  d.symbolSize = static_cast<uint16_t>(block->encoder.symbolSize());
  if (k == 0) return false;
  ++counts_.blocks;
  trace({.kind = TraceEvent::Kind::kBlockStarted,
         .time = now,
         .subflow = d.ranges[0].subflow,
         .k = static_cast<uint8_t>(k),
         .m = d.parities,
         .block = d.block,
         .lossRate = worstLoss(recoveryPaths_, protection.of, options_.recoveryOptions)});
  return true;
}

// The oldest packets of each path, path by path.
void Session::gather(ProtectionBlock& block, uint8_t recoveryClass, const Flow* flow, const Protection& p) {
  size_t most = std::min(p.symbols, options_.recoveryOptions.kMax);
  const Subflow& on = subflows_[p.on];
  auto isOf = [&](size_t i) { return p.of == Protection::kAllPaths || p.of == i; };
  if (flow) {
    for (size_t i = 0; i < subflows_.size(); ++i) {
      if (!isOf(i)) continue;
      for (const Datum* d = flow->sent.oldest(); d && block.encoder.symbols() < most;
           d = SentData::newer(*d)) {
        if (d->subflow == subflows_[i].id() && !d->queued) addSymbol(block, subflows_[i], on, d->pn);
      }
    }
    return;
  }
  for (size_t i = 0; i < subflows_.size(); ++i) {
    if (!isOf(i)) continue;
    const SentPackets& sent = subflows_[i].sent();
    for (uint64_t pn = marks_[i].firstUncoded(sent, recoveryClass);
         pn < sent.next() && block.encoder.symbols() < most && sent.at(pn).sentAt <= p.sentUntil;
         pn = marks_[i].firstUncoded(sent, recoveryClass, pn + 1))
      addSymbol(block, subflows_[i], on, pn);
  }
}

bool Session::addSymbol(ProtectionBlock& block, Subflow& of, const Subflow& on, uint64_t pn) {
  if (!ProtectionMarks::isCodable(of.sent(), pn)) return false;
  const SentPacket& packet = of.sent().at(pn);
  for (size_t i = 0; i < packet.dataCount; ++i) {
    if (!ledger_.isTooLate(*packet.data[i], block.began)) continue;
    ledger_.refuseCode(packet.data[i]);
    return false;
  }
  std::array<std::array<uint8_t, kDataFrameHeader>, kMaxDataPerDatagram> headers;
  std::array<ByteView, 2 * kMaxDataPerDatagram> pieces;
  for (size_t i = 0; i < packet.dataCount; ++i) {
    const Datum& d = *packet.data[i];
    writeDataHeader(d.slot, d.dsn, d.packet.size(), headers[i].data());
    pieces[2 * i] = headers[i];
    pieces[2 * i + 1] = d.packet.view();
  }
  if (!block.encoder.add({pieces.data(), size_t{2} * packet.dataCount})) return false;
  for (size_t i = 0; i < packet.dataCount; ++i) {
    ledger_.onCoded(packet.data[i], block.began + answerTime(of, on));
  }
  of.tally().onProtected();
  BlockDescription& d = block.description;
  SymbolRange* last = d.rangeCount > 0 ? &d.ranges[d.rangeCount - 1] : nullptr;
  if (last && last->subflow == of.id() && last->first + last->count == pn) {
    ++last->count;
  } else {
    d.ranges[d.rangeCount++] = {of.id(), pn, 1};
  }
  return true;
}

bool Session::sendParity(ProtectionBlock& block, Subflow& on, Datagram& out, Time now) {
  const BlockDescription& d = block.description;
  size_t room = frameRoom(on.mtu());
  size_t header = parityHeaderSize(d);
  size_t index = block.next++;
  if (header > std::min(room, kMaxParityHeader) || d.symbolSize > room - header + room - kParityTailHeader ||
      !tail_.bytes.empty())
    return false;
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  ByteView parity = block.encoder.parity(index);
  DatagramBuilder build(on, std::move(buffer));
  size_t part = std::min<size_t>(parity.size(), room - header);
  build.reserve(part + header);
  build.addAck(now);
  build.addParity(d, index, parity.first(part));
  if (part < parity.size()) {
    tail_.block = d.block;
    tail_.index = static_cast<uint8_t>(index);
    tail_.subflow = on.id();
    tail_.offset = static_cast<uint16_t>(part);
    tail_.bytes.assign(parity.begin() + static_cast<ptrdiff_t>(part), parity.end());
  }
  on.tally().onParitySent(build.used());
  trace({.kind = TraceEvent::Kind::kParitySent,
         .time = now,
         .on = on.id(),
         .index = static_cast<uint8_t>(index),
         .k = static_cast<uint8_t>(block.encoder.symbols()),
         .m = d.parities,
         .block = d.block,
         .onPn = build.packetNumber()});
  return build.finish(sealer_, out, now);
}

void Session::onPacketLost(const Subflow& subflow, uint64_t pn, double recentRate, Time now) {
  trace({.kind = TraceEvent::Kind::kPacketLost,
         .time = now,
         .subflow = subflow.id(),
         .pn = pn,
         .lossRate = recentRate});
}

void Session::trace(const TraceEvent& event) {
  if (!options_.trace) return;
  TraceEvent whole = event;
  whole.session = id_;
  options_.trace->onTrace(whole);
}

}  // namespace braid
