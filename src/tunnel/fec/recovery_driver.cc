#include "tunnel/fec/recovery_driver.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
/// Maximum number of un-ACKed packets of a flow that are looked at in its turn: enough for some
/// short bursts.
constexpr size_t kMostOfAFlow = 256;
/// Maximum number of choices of a policy in a row that result in no datagram.
constexpr size_t kChoices = 4;

/// A small flow's protection has the priority allowance of its data and is sent before bulk.
/// Protection for all flows of a class waits as bulk does.
bool isSmall(const Flow* flow) {
  return flow && flow->burst.isSmall();
}
}  // namespace

void ProactiveRecovery::setPeer(const Params& peer) {
  blocks_.setMostSymbols(peer.symbols);
  receiveWindow_ = windowOf(peer);
}

void ProactiveRecovery::growMarks() {
  if (marks_.size() < context_.subflows.size()) marks_.resize(context_.subflows.size());
}

// ---- what is sent

bool ProactiveRecovery::onNewData(UnitRef unit) {
  Flow& flow = *unit->flow;
  const RecoveryPolicy& policy = policies_.of(flow.recoveryClass());
  if (policy.duplication() != Duplication::kNone) duplicates_.add(unit);
  // MPTCP's opportunistic retransmission (Raiciu et al., NSDI 2012): the packet that keeps a full
  // receive window from moving is also sent on another path.
  UnitRef oldest = flow.sent.oldest();
  if (flow.reliable() && unit->dsn - oldest->dsn >= receiveWindow_ && oldest->mayCopy())
    duplicates_.add(oldest);
  bool takesTurn =
      policy.takesTurns() && flow.burst.ended() && flow.waitingBytes() == 0 && flow.burst.isShort();
  lastEnded_ = flow.burst.ended() && !takesTurn;
  return takesTurn;
}

void ProactiveRecovery::onDataSent(const DataUnit& unit, Time now) {
  growMarks();
  marks_[context_.subflows.positionOf(unit.subflow)].noteData(unit.flow->recoveryClass(), now);
}

void ProactiveRecovery::onRecovered(const RecoveredFrame& frame, Time now) {
  Subflow* subflow = context_.subflows.find(frame.subflow);
  if (!subflow) return;
  for (PacketNumber pn = frame.first; pn < frame.first + frame.count; ++pn) {
    if (!subflow->sender().onRecovered(pn)) continue;
    context_.trace.note({.kind = TraceEvent::Kind::kPacketRecovered,
                         .time = now,
                         .subflow = frame.subflow,
                         .pn = pn});
  }
}

// ---- what leaves

bool ProactiveRecovery::pollTurn(Flow& flow, Datagram& out, Time now) {
  return flow.sent.oldest() && protect(flow.recoveryClass(), &flow, out, now);
}

bool ProactiveRecovery::pollIdle(bool newDataWaits, Datagram& out, Time now) {
  idleAgainAt_ = kNever;
  if (newDataWaits || context_.dataTracker.records() == 0) return false;
  for (size_t c = 0; c < policies_.size(); ++c) {
    if (protect(static_cast<uint8_t>(c), nullptr, out, now)) return true;
  }
  return false;
}

// Sends protection for all flows of the class; in a flow's turn only for that flow.
bool ProactiveRecovery::protect(uint8_t recoveryClass, Flow* flow, Datagram& out, Time now) {
  RecoveryPolicy& policy = policies_.of(recoveryClass);
  for (size_t tries = 0; tries < kChoices; ++tries) {
    RecoveryView view = look(recoveryClass, flow, now);
    Time begin = policy.notBefore(view);
    if (begin > now) {
      if (!flow) idleAgainAt_ = std::min(idleAgainAt_, begin);
      return false;
    }
    countUnacked(recoveryClass, flow);
    std::optional<Protection> choice = policy.choose(view);
    if (!choice || choice->on >= context_.subflows.size() ||
        !context_.subflows[choice->on].admission().isOpenFor(isSmall(flow), now)) {
      if (!flow) askAgain(policy, now);
      return false;
    }
    Subflow& on = context_.subflows[choice->on];
    bool sent = false;
    switch (choice->kind) {
      case Protection::Kind::kCopy:
      case Protection::Kind::kNewest:
        sent = sendCopy(recoveryClass, flow, *choice, out, now);
        break;
      case Protection::Kind::kNewBlock:
        sent = startBlock(recoveryClass, flow, *choice, out, now);
        break;
      case Protection::Kind::kNextParity:
        sent = blocks_.sendParity(recoveryClass, flow, on, out, now);
        break;
    }
    if (sent) return true;
  }
  return false;
}

// Begins a block and sends its first parity. A peer that decodes nothing gets a copy of the packet
// that would be the first of the block.
bool ProactiveRecovery::startBlock(uint8_t recoveryClass, const Flow* flow,
                                   const Protection& choice, Datagram& out, Time now) {
  if (blocks_.mostSymbols() > 0)
    return blocks_.start(recoveryClass, flow, choice, paths_, now) &&
           blocks_.sendParity(recoveryClass, flow, context_.subflows[choice.on], out, now);
  Protection copy{.kind = Protection::Kind::kCopy, .of = choice.of, .on = choice.on};
  if (choice.of == Protection::kAllPaths) {
    auto isUncopied = [](const RecoveryPath& path) { return path.uncopied > 0; };
    copy.of = static_cast<size_t>(std::find_if(paths_.begin(), paths_.end(), isUncopied) -
                                  paths_.begin());
  }
  return sendCopy(recoveryClass, flow, copy, out, now);
}

// pollIdle() is due again when the policy says so; or, while data is unprotected and no path is
// open, when a path opens.
void ProactiveRecovery::askAgain(const RecoveryPolicy& policy, Time now) {
  Time again = policy.nextDeadline();
  Time opens = kNever;
  bool isUnprotected = false;
  for (const RecoveryPath& path : paths_) {
    opens = std::min(opens, path.opensAt);
    isUnprotected |= path.uncopied > 0;
  }
  if (isUnprotected && opens > now) again = std::min(again, opens);
  idleAgainAt_ = std::min(idleAgainAt_, again);
}

// ---- what the policy sees

RecoveryView ProactiveRecovery::look(uint8_t recoveryClass, Flow* flow, Time now) {
  SubflowSet& subflows = context_.subflows;
  growMarks();
  RecoveryView view;
  view.now = now;
  view.chance = flow ? RecoveryChance::kTurn : RecoveryChance::kIdle;
  view.ended = flow ? flow->burst.ended() : lastEnded_;
  paths_.resize(subflows.size());
  size_t largest = 0;
  for (size_t i = 0; i < subflows.size(); ++i) {
    paths_[i] = recoveryPath(subflows[i], marks_[i].lastSent(recoveryClass), now);
    paths_[i].open |= subflows[i].admission().isOpenFor(isSmall(flow), now);
    if (paths_[i].usable) largest = std::max(largest, subflows[i].mtu().current());
  }
  // A path is excluded if two of its datagrams cannot hold what was one datagram on another path.
  for (size_t i = 0; i < subflows.size(); ++i) {
    if (2 * subflows[i].mtu().current() >= largest + FecSender::kMaxParityHeader) continue;
    paths_[i].open = false;
    paths_[i].opensAt = kNever;
  }
  view.paths = paths_;
  view.paritiesLeft = blocks_.paritiesLeft(recoveryClass, flow, now);
  view.blockOf = blocks_.protectedPath(recoveryClass, flow);
  return view;
}

// Counts the un-ACKed data of all flows of the class, or of one flow.
void ProactiveRecovery::countUnacked(uint8_t recoveryClass, const Flow* flow) {
  SubflowSet& subflows = context_.subflows;
  if (!flow) {
    for (size_t i = 0; i < subflows.size(); ++i)
      marks_[i].countUnacked(subflows[i].sender().sent(), paths_[i], recoveryClass,
                             context_.recovery.kMax);
    return;
  }
  size_t left = kMostOfAFlow;
  for (UnitRef d = flow->sent.oldest(); d && left > 0; d = SentData::newer(*d), --left) {
    if (d->isLost() || d->moved) continue;
    size_t i = subflows.positionOf(d->subflow);
    paths_[i].uncopied += d->mayCopy();
    paths_[i].uncoded += ProtectionCursors::isCodable(subflows[i].sender().sent(), d->pn);
  }
}

// ---- copies

// Number of the packet whose data is to be copied. If there is none: the next number of its
// subflow.
PacketNumber ProactiveRecovery::choosePacket(uint8_t recoveryClass, const Flow* flow,
                                             const Protection& choice) {
  const Subflow& of = context_.subflows[choice.of];
  ProtectionCursors& marks = marks_[choice.of];
  PacketNumber pn = choice.kind == Protection::Kind::kNewest
                        ? ProtectionCursors::newestUnacked(of.sender().sent(), recoveryClass)
                    : choice.uncoded ? marks.firstUncoded(of.sender().sent(), recoveryClass)
                                     : marks.firstUncopied(of.sender().sent(), recoveryClass);
  if (!flow) return pn;
  auto skip = [&](const DataUnit& d) {
    return !d.mayCopy() || d.isLost() || (d.isProtected() && choice.uncoded) ||
           d.subflow != of.id();
  };
  UnitRef d = flow->sent.oldest();
  while (d && skip(*d)) d = SentData::newer(*d);
  return d ? d->pn : of.sender().sent().next();
}

bool ProactiveRecovery::sendCopy(uint8_t recoveryClass, const Flow* flow, const Protection& choice,
                                 Datagram& out, Time now) {
  if (choice.of >= context_.subflows.size()) return false;
  Subflow& of = context_.subflows[choice.of];
  Subflow& on = context_.subflows[choice.on];
  PacketNumber pn = choosePacket(recoveryClass, flow, choice);
  if (pn == of.sender().sent().next()) return false;
  Packet buffer = context_.pool.allocate();
  if (!buffer) return false;
  DatagramBuilder build(on, std::move(buffer));
  bool newest = choice.kind == Protection::Kind::kNewest;
  const SentPacket& packet = of.sender().sent().at(pn);
  bool first = true;  // this is the first protection of the packet
  for (size_t i = 0; i < packet.dataCount; ++i) {
    UnitRef d = packet.data[i];
    first &= !d->isProtected();
    if (!d->isInFlight() || (!d->mayCopy() && !newest)) continue;
    if (choice.uncoded && d->protection == UnitProtection::kCoded) continue;
    if (d->flow->recoveryClass() != recoveryClass) continue;
    if (!context_.dataTracker.isTooLate(*d, now) && build.fits(d->packet.size())) {
      build.addCopy(d);
    } else {
      context_.dataTracker.forbidCopy(d);
    }
  }
  if (build.data().empty()) return false;
  if (first) of.sender().tally().onProtected();
  return sendCopies(context_, build, of, pn, out, now);
}

}  // namespace braid
