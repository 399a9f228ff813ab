#include "tunnel/fec/cursors.h"

#include <algorithm>
#include <utility>

#include "tunnel/queue/flow.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

namespace {
/// Maximum number of packets looked at in search of the newest one with data.
constexpr uint64_t kNewestSearch = 64;
/// How many packet numbers after the oldest packet that may be coded are searched for more of them:
/// limits the work.
constexpr uint64_t kMostScanned = 512;

/// Only packets in flight for the first time, whose data was not moved to another path, are
/// protected.
bool isProtectable(const SentPacket& p) {
  return p.state == SentPacket::State::kInFlight && p.role == SentPacket::Role::kOrdinary &&
         !p.moved;
}

bool isUncopied(const SentPacket& p, uint8_t recoveryClass) {
  if (!isProtectable(p)) return false;
  for (size_t i = 0; i < p.dataCount; ++i) {
    const DataUnit& d = *p.data[i];
    if (!d.isDone() && d.mayCopy() && d.flow->recoveryClass() == recoveryClass) return true;
  }
  return false;
}

bool isUncoded(const SentPacket& p, uint8_t recoveryClass) {
  if (!isProtectable(p)) return false;
  bool ofClass = false;
  for (size_t i = 0; i < p.dataCount; ++i) {
    const DataUnit& d = *p.data[i];
    if (d.isDone() || d.isProtected()) return false;
    ofClass |= d.flow->recoveryClass() == recoveryClass;
  }
  return ofClass;
}
}  // namespace

PacketNumber ProtectionCursors::firstUncopied(const SentPackets& sent, uint8_t recoveryClass) {
  PacketNumber& pn = classes_[recoveryClass].copy;
  pn = std::max(pn, sent.first());
  while (pn < sent.next() && !isUncopied(sent.at(pn), recoveryClass))
    pn = sent.nextInFlight(pn + 1);
  return pn;
}

PacketNumber ProtectionCursors::firstUncoded(const SentPackets& sent, uint8_t recoveryClass,
                                             PacketNumber from, PacketNumber end) {
  PacketNumber& mark = classes_[recoveryClass].code;
  mark = std::max(mark, sent.first());
  PacketNumber pn = std::max(mark, from);
  end = std::min(end, sent.next());
  while (pn < end && !isUncoded(sent.at(pn), recoveryClass)) pn = sent.nextInFlight(pn + 1);
  if (from <= mark) mark = std::max(mark, std::min(pn, end));
  return pn < end ? pn : sent.next();
}

void ProtectionCursors::countUnacked(const SentPackets& sent, RecoveryPath& path,
                                     uint8_t recoveryClass, size_t most) {
  PacketNumber newest = newestUnacked(sent, recoveryClass);
  if (newest != sent.next()) {
    path.unacked = 1;
    path.newestSent = sent.at(newest).sentAt;
  }
  if (firstUncopied(sent, recoveryClass) == sent.next()) return;
  path.uncopied = 1;
  PacketNumber first = firstUncoded(sent, recoveryClass);
  PacketNumber end = std::min(sent.next(), first + kMostScanned);
  for (PacketNumber pn = first; pn < end && path.uncoded < most;
       pn = firstUncoded(sent, recoveryClass, pn + 1, end)) {
    if (path.uncoded++ == 0) path.oldestUncoded = sent.at(pn).sentAt;
  }
}

PacketNumber ProtectionCursors::newestUnacked(const SentPackets& sent, uint8_t recoveryClass) {
  for (uint64_t i = 1; i <= kNewestSearch && i <= sent.next() - sent.first(); ++i) {
    const SentPacket& p = sent.at(sent.next() - i);
    if (!isProtectable(p)) continue;
    for (size_t k = 0; k < p.dataCount; ++k) {
      if (!p.data[k]->isDone() && p.data[k]->flow->recoveryClass() == recoveryClass)
        return sent.next() - i;
    }
  }
  return sent.next();
}

bool ProtectionCursors::isCodable(const SentPackets& sent, PacketNumber pn) {
  if (!sent.contains(pn)) return false;
  const SentPacket& p = sent.at(pn);
  for (size_t i = 0; i < p.dataCount; ++i) {
    if (!p.data[i]->isDone()) return isUncoded(p, p.data[i]->flow->recoveryClass());
  }
  return false;
}

RecoveryPath recoveryPath(const Subflow& subflow, Time lastSent, Time now) {
  const LossEstimate& losses = subflow.path().losses();
  RecoveryPath path;
  path.usable = subflow.admission().takesData();
  path.opensAt = subflow.admission().opensAt();
  path.open = path.opensAt <= now;
  path.srtt = subflow.path().rtt().smoothed();
  path.window = subflow.admission().window();
  path.inFlight = subflow.sender().flight().bytes();
  path.sent = losses.sent();
  path.lost = losses.lost();
  path.sinceLoss = losses.sinceLoss();
  path.recentRate = losses.recentRate();
  path.recentPackets = losses.recentPackets();
  path.burst = losses.burst();
  path.congested = subflow.path().congestion().congested(now);
  path.lastAcked = subflow.sender().flight().progressAt();
  path.lastSent = lastSent;
  path.uplink = subflow.uplinkNumber();
  return path;
}

void DuplicateQueue::add(UnitRef unit) {
  context_.dataTracker.retain(unit);
  waiting_.pushBack(std::move(unit));
  if (waiting_.size() > kMost) dropFirst();
}

void DuplicateQueue::clear() {
  while (!waiting_.empty()) dropFirst();
}

void DuplicateQueue::dropFirst() {
  context_.dataTracker.release(waiting_.front());
  waiting_.popFront();
}

bool DuplicateQueue::isWanted(const DataUnit& unit, Time now) const {
  return unit.isInFlight() && unit.mayCopy() && !context_.dataTracker.isTooLate(unit, now);
}

bool DuplicateQueue::findPath(const DataUnit& unit, Subflow*& open, Time now) const {
  bool same = policies_.of(unit.flow->recoveryClass()).duplication() == Duplication::kSamePath;
  const Subflow& own = context_.subflows.at(unit.subflow);
  auto carries = [&](const Subflow* s) {
    return s->admission().takesData() && (s == &own) == same && fits(unit.packet.size(), *s);
  };
  auto isElsewhere = [&](const Subflow* s) { return !s->sharesUplink(own) && carries(s); };
  bool elsewhere = std::any_of(context_.subflows.begin(), context_.subflows.end(), isElsewhere);
  bool any = false;
  open = nullptr;
  for (Subflow* s : context_.subflows) {
    if (!carries(s) || (elsewhere && s->sharesUplink(own))) continue;
    any = true;
    if (s->admission().isOpen(now) &&
        (!open || s->path().rtt().smoothed() < open->path().rtt().smoothed()))
      open = s;
  }
  return any;
}

bool DuplicateQueue::poll(Datagram& out, Time now) {
  while (!waiting_.empty()) {
    UnitRef unit = waiting_.front();
    Subflow* path = nullptr;
    bool sent = false;
    if (isWanted(*unit, now) && findPath(*unit, path, now)) {
      if (!path) return false;
      Packet buffer = context_.pool.allocate();
      if (!buffer) return false;
      DatagramBuilder build(*path, std::move(buffer));
      build.addCopy(unit);
      Subflow& of = context_.subflows.at(unit->subflow);
      if (!unit->isProtected()) of.sender().tally().onProtected();
      sent = sendCopies(context_, build, of, unit->pn, out, now);
    }
    dropFirst();
    if (sent) return true;
  }
  return false;
}

}  // namespace braid
