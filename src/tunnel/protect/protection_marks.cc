#include "tunnel/protect/protection_marks.h"

#include <algorithm>

#include "tunnel/lane/flow.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

namespace {
/// Packets looked at in the search for the newest one with data. Ours.
constexpr uint64_t kNewestSearch = 64;
/// Packets behind the oldest one that may be coded among which more are looked for: keeps the work bounded.
/// Ours.
constexpr uint64_t kMostScanned = 512;

/// Only what is in flight for the first time, and still awaited there, is protected.
bool isProtectable(const SentPacket& p) {
  return p.state == SentPacket::State::kInFlight && p.role == SentPacket::Role::kOrdinary && !p.moved;
}

bool isUncopied(const SentPacket& p, uint8_t recoveryClass) {
  if (!isProtectable(p)) return false;
  for (size_t i = 0; i < p.dataCount; ++i) {
    const Datum& d = *p.data[i];
    if (!d.done && !d.copied && d.flow->recoveryClass() == recoveryClass) return true;
  }
  return false;
}

bool isUncoded(const SentPacket& p, uint8_t recoveryClass) {
  if (!isProtectable(p)) return false;
  bool ofClass = false;
  for (size_t i = 0; i < p.dataCount; ++i) {
    const Datum& d = *p.data[i];
    if (d.done || d.copied || d.coded) return false;
    ofClass |= d.flow->recoveryClass() == recoveryClass;
  }
  return ofClass;
}
}  // namespace

PacketNumber ProtectionMarks::firstUncopied(const SentPackets& sent, uint8_t recoveryClass) {
  PacketNumber& pn = classes_[recoveryClass].copy;
  pn = std::max(pn, sent.first());
  while (pn < sent.next() && !isUncopied(sent.at(pn), recoveryClass)) pn = sent.nextInFlight(pn + 1);
  return pn;
}

PacketNumber ProtectionMarks::firstUncoded(const SentPackets& sent, uint8_t recoveryClass, PacketNumber from,
                                           PacketNumber end) {
  PacketNumber& mark = classes_[recoveryClass].code;
  mark = std::max(mark, sent.first());
  PacketNumber pn = std::max(mark, from);
  end = std::min(end, sent.next());
  while (pn < end && !isUncoded(sent.at(pn), recoveryClass)) pn = sent.nextInFlight(pn + 1);
  if (from <= mark) mark = std::max(mark, std::min(pn, end));
  return pn < end ? pn : sent.next();
}

void ProtectionMarks::countUnacked(const SentPackets& sent, RecoveryPath& path, uint8_t recoveryClass,
                                   size_t most) {
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

PacketNumber ProtectionMarks::newestUnacked(const SentPackets& sent, uint8_t recoveryClass) {
  for (uint64_t i = 1; i <= kNewestSearch && i <= sent.next() - sent.first(); ++i) {
    const SentPacket& p = sent.at(sent.next() - i);
    if (!isProtectable(p)) continue;
    for (size_t k = 0; k < p.dataCount; ++k) {
      if (!p.data[k]->done && p.data[k]->flow->recoveryClass() == recoveryClass) return sent.next() - i;
    }
  }
  return sent.next();
}

bool ProtectionMarks::isCodable(const SentPackets& sent, PacketNumber pn) {
  if (!sent.contains(pn)) return false;
  const SentPacket& p = sent.at(pn);
  for (size_t i = 0; i < p.dataCount; ++i) {
    if (!p.data[i]->done) return isUncoded(p, p.data[i]->flow->recoveryClass());
  }
  return false;
}

RecoveryPath recoveryPath(const Subflow& subflow, Time lastSent, Time now) {
  const LossEstimate& losses = subflow.path().losses();
  RecoveryPath path;
  path.usable = subflow.gate().takesData();
  path.opensAt = subflow.gate().opensAt();
  path.open = path.opensAt <= now;
  path.srtt = subflow.path().rtt().smoothed();
  path.window = subflow.gate().window();
  path.inFlight = subflow.sender().flight().bytes();
  path.sent = losses.sent();
  path.lost = losses.lost();
  path.sinceLoss = losses.sinceLoss();
  path.recentRate = losses.recentRate();
  path.recentPackets = losses.recentPackets();
  path.burst = losses.burst();
  path.lastAcked = subflow.sender().flight().progressAt();
  path.lastSent = lastSent;
  return path;
}

}  // namespace braid
