// What proactive recovery asks of a subflow: which of its packets may be protected, and how it loses.

#include <algorithm>

#include "tunnel/lane/flow_queue.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

namespace {
/// Packets looked at in the search for the newest one with data. Ours.
constexpr uint64_t kNewestSearch = 64;
/// Packets behind the oldest one that may be coded among which more are looked for: keeps the work bounded.
/// Ours.
constexpr uint64_t kMostScanned = 512;
}  // namespace

RecoveryPath Subflow::recoveryPath(uint8_t recoveryClass, Time now) const {
  RecoveryPath path;
  path.usable = takesData();
  path.opensAt = opensAt();
  path.open = path.opensAt <= now;
  path.srtt = rtt_.smoothed();
  path.window = gate_.window();
  path.inFlight = flight_.bytes();
  path.sent = lossEstimate_.sent();
  path.lost = lossEstimate_.lost();
  path.sinceLoss = lossEstimate_.sinceLoss();
  path.recentRate = lossEstimate_.recentRate();
  path.recentPackets = lossEstimate_.recentPackets();
  path.burst = lossEstimate_.burst();
  path.lastAcked = flight_.progressAt();
  path.lastSent = marks_[recoveryClass].lastSent;
  return path;
}

void Subflow::countUnacked(RecoveryPath& path, uint8_t recoveryClass, size_t most) {
  uint64_t newest = newestUnacked(recoveryClass);
  if (newest != sent().next()) {
    path.unacked = 1;
    path.newestSent = sent().at(newest).sentAt;
  }
  uint64_t uncopied = firstUncopied(recoveryClass);
  if (uncopied == sent().next()) return;
  path.uncopied = 1;
  uint64_t first = firstUncoded(recoveryClass);
  uint64_t end = std::min(sent().next(), first + kMostScanned);
  for (uint64_t pn = first; pn < end && path.uncoded < most; pn = firstUncoded(recoveryClass, pn + 1)) {
    if (path.uncoded++ == 0) path.oldestUncoded = sent().at(pn).sentAt;
  }
}

// Once a packet may not be copied (coded) any more, it never may again: the cursors only go up.
uint64_t Subflow::firstUncopied(uint8_t recoveryClass) {
  uint64_t& pn = marks_[recoveryClass].copy;
  pn = std::max(pn, sent().first());
  while (pn < sent().next() && !isUncopied(sent().at(pn), recoveryClass)) ++pn;
  return pn;
}

uint64_t Subflow::firstUncoded(uint8_t recoveryClass, uint64_t from) {
  uint64_t& cursor = marks_[recoveryClass].code;
  cursor = std::max(cursor, sent().first());
  uint64_t pn = std::max(cursor, from);
  while (pn < sent().next() && !isUncoded(sent().at(pn), recoveryClass)) ++pn;
  if (from <= cursor) cursor = pn;
  return pn;
}

bool Subflow::isUncopied(const SentPacket& p, uint8_t recoveryClass) const {
  if (p.state != SentPacket::State::kInFlight || p.role != SentPacket::Role::kOrdinary || p.moved)
    return false;
  for (size_t i = 0; i < p.dataCount; ++i) {
    const Datum& d = *p.data[i];
    if (!d.done && !d.copied && d.flow->recoveryClass == recoveryClass) return true;
  }
  return false;
}

bool Subflow::isUncoded(const SentPacket& p, uint8_t recoveryClass) const {
  if (p.state != SentPacket::State::kInFlight || p.role != SentPacket::Role::kOrdinary || p.moved)
    return false;
  bool ofClass = false;
  for (size_t i = 0; i < p.dataCount; ++i) {
    const Datum& d = *p.data[i];
    if (d.done || d.copied || d.coded) return false;
    ofClass |= d.flow->recoveryClass == recoveryClass;
  }
  return ofClass;
}

bool Subflow::isCodable(uint64_t pn) const {
  if (!sent().contains(pn)) return false;
  const SentPacket& p = sent().at(pn);
  for (size_t i = 0; i < p.dataCount; ++i) {
    if (!p.data[i]->done) return isUncoded(p, p.data[i]->flow->recoveryClass);
  }
  return false;
}

uint64_t Subflow::newestUnacked(uint8_t recoveryClass) const {
  for (uint64_t i = 1; i <= kNewestSearch && i <= sent().next() - sent().first(); ++i) {
    const SentPacket& p = sent().at(sent().next() - i);
    if (p.state != SentPacket::State::kInFlight || p.moved || p.role != SentPacket::Role::kOrdinary) continue;
    for (size_t k = 0; k < p.dataCount; ++k) {
      if (!p.data[k]->done && p.data[k]->flow->recoveryClass == recoveryClass) return sent().next() - i;
    }
  }
  return sent().next();
}

bool Subflow::onRecovered(uint64_t pn) {
  if (!sent().contains(pn)) return false;
  const SentPacket& p = sent().at(pn);
  bool news = false;
  bool instead = false;  // of a repair that has not been sent yet
  for (size_t i = 0; i < p.dataCount; ++i) {
    news |= !p.data[i]->done;
    instead |= p.data[i]->queued;
    ledger_.onRecovered(p.data[i]);
  }
  counts_.decoded += news;
  bool lost = p.countedLost && p.role == SentPacket::Role::kOrdinary && !p.moved;
  counts_.recovered += news && instead && lost;
  return news;
}

// Useful protection is what has delivered the data before its own packet is given up.
void Subflow::noteLoss(uint64_t pn, SentPacket& p, Time now) {
  if (p.mtuProbe) return;
  lossEstimate_.onLost(pn);
  p.countedLost = true;
  bool recovered = false;
  for (size_t i = 0; i < p.dataCount; ++i)
    recovered |= p.data[i]->delivered && (p.data[i]->copied || p.data[i]->coded);
  if (recovered && p.role == SentPacket::Role::kOrdinary && !p.moved) ++counts_.recovered;
  owner_.onPacketLost(*this, pn, lossEstimate_.recentRate(), now);
}

void Subflow::countProtection(SentPacket::Role role, size_t bytes) {
  ++(role == SentPacket::Role::kCopy ? counts_.copies : counts_.parities);
  counts_.protectionBytes += bytes;
}

void Subflow::fillProtection(SubflowStatus& s) const {
  RecoveryPath path;
  path.sent = lossEstimate_.sent();
  path.lost = lossEstimate_.lost();
  path.sinceLoss = lossEstimate_.sinceLoss();
  s.copies = counts_.copies;
  s.parities = counts_.parities;
  s.protectionBytes = counts_.protectionBytes;
  s.protectedPackets = counts_.protectedPackets;
  s.recovered = counts_.recovered;
  s.decoded = counts_.decoded;
  s.useless = counts_.useless;
  s.lossRate = lossMetric(path, options_.recoveryOptions.alpha1, options_.recoveryOptions.beta1);
  s.lossMetric = lossMetric(path, options_.recoveryOptions.alpha, options_.recoveryOptions.beta);
  s.burst = lossEstimate_.burst();
}

}  // namespace braid
