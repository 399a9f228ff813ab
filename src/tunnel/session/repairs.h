#pragma once

#include <algorithm>

#include "tunnel/fec/policies.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/flow.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// Decides which lost packet is resent next, and on which path. The data tracker keeps the queue of
/// packets to repair. This class chooses a path for each of them, and lets a packet wait while the
/// peer may still recover it from a copy or a parity in flight.
class Repairs {
 public:
  /// All arguments must outlive this object.
  Repairs(SubflowSet& subflows, DataTracker& dataTracker, const RecoveryPolicies& policies,
          PacketPool& pool)
      : subflows_(subflows), dataTracker_(dataTracker), policies_(policies), pool_(pool) {}

  /// The first packet to repair that does not wait for the peer's answer to its protection; nullptr
  /// when there is none.
  UnitRef first(Time now);
  /// The first such packet for which a path is open now, and that path. Packets that no path can
  /// carry are given up, or cut if they are stream data.
  UnitRef pick(Subflow*& path, Time now);
  /// Whether this packet may be resent on that path.
  bool mayUse(const DataUnit& unit, const Subflow& path, Time now) const;
  /// When the first packet stops waiting for the peer's answer; may be in the past. kNever: none
  /// waits.
  Time readyAt() const { return readyAt_; }

 private:
  /// Maximum number of packets waiting for repair that are tried until one has an open path.
  static constexpr int kRepairTries = 32;
  /// Maximum number of packets passed over in that search because the peer may still recover them
  /// from protection.
  static constexpr int kAnswersAwaited = 256;

  bool allCongested(Time now) const;
  UnitRef nextReady(UnitRef unit, int& left, Time now);
  Subflow* pathFor(const DataUnit& unit, Time now) const;
  bool isTooLarge(const DataUnit& unit) const;
  bool cut(UnitRef unit);

  SubflowSet& subflows_;
  DataTracker& dataTracker_;
  const RecoveryPolicies& policies_;
  PacketPool& pool_;
  Time readyAt_ = kNever;
  /// Value of DataTracker::repairChanges() when no packet was ready before readyAt_.
  uint64_t noneReady_ = UINT64_MAX;
};

// If every packet may use the best open path, either the first one can be sent or none can. A
// packet bound to its own path may have to wait while another packet's path is open.
inline UnitRef Repairs::pick(Subflow*& path, Time now) {
  UnitRef unit = first(now);
  int left = kAnswersAwaited;
  for (int tries = 0; unit && tries < kRepairTries;) {
    if ((path = pathFor(*unit, now))) return unit;
    if (unit->frame != 0 && cut(unit) && (path = pathFor(*unit, now))) return unit;
    UnitRef next = DataTracker::repairAfter(unit);
    if (unit->frame == 0 && isTooLarge(*unit)) {
      dataTracker_.giveUp(unit, Drop::kTooBig);
    } else {
      ++tries;  // a packet that was given up costs no other packet its try
    }
    unit = nextReady(next, left, now);
  }
  return nullptr;
}

// A path that is not usable now may return and carry the packet.
inline bool Repairs::isTooLarge(const DataUnit& unit) const {
  return std::none_of(subflows_.begin(), subflows_.end(), [&](const Subflow* s) {
    return mayFit(unit.packet.size(), *s) || !s->usable();
  });
}

// Cuts the packet to what the largest usable path carries, if no usable path carries all of it now.
inline bool Repairs::cut(UnitRef unit) {
  size_t largest = 0;
  for (const Subflow* s : subflows_) {
    if (!s->admission().takesData()) continue;
    if (fits(unit->packet.size(), *s)) return false;
    largest = std::max(largest, s->mtu().current());
  }
  return largest > 0 && dataTracker_.cut(unit, largest - kDatagramOverhead, pool_);
}

// The queue is searched again when it has changed, or when the first waiting packet is due.
inline UnitRef Repairs::first(Time now) {
  UnitRef head = dataTracker_.nextRepair(now);
  if (dataTracker_.repairChanges() == noneReady_ && now < readyAt_) return nullptr;
  readyAt_ = kNever;
  int left = kAnswersAwaited;
  UnitRef ready = nextReady(head, left, now);
  noneReady_ = ready ? UINT64_MAX : dataTracker_.repairChanges();
  return ready;
}

// Skips packets that a copy or parity in flight may still recover, until the peer's answer is due.
// `left`: how many more packets may be skipped.
inline UnitRef Repairs::nextReady(UnitRef unit, int& left, Time now) {
  for (; unit && left > 0; --left) {
    if (unit->answerDue <= now) return unit;
    readyAt_ = std::min(readyAt_, unit->answerDue);
    unit = DataTracker::repairAfter(unit);
  }
  return nullptr;
}

inline bool Repairs::allCongested(Time now) const {
  return std::all_of(subflows_.begin(), subflows_.end(), [&](const Subflow* s) {
    return !s->admission().takesData() || s->path().congestion().congested(now);
  });
}

// Paths that share an uplink are likely to fail together. So a packet is resent on another path of
// its uplink only while no path of another uplink can carry it. A packet moved off a path that fell
// silent is not resent on that path while another usable one can carry it. A policy that repairs
// like MPTCP keeps a packet on its own path as long as that is alive.
inline bool Repairs::mayUse(const DataUnit& unit, const Subflow& path, Time now) const {
  const RecoveryPolicy& policy = policies_.of(unit.flow->recoveryClass());
  const Subflow& own = subflows_.at(unit.subflow);
  if (own.admission().takesData() &&
      (policy.repairPlace() == RepairPlace::kOwnPath || (!unit.moved && allCongested(now))) &&
      mayFit(unit.packet.size(), own))
    return unit.subflow == path.id();
  bool isOwn = &path == &own;
  if (isOwn ? !unit.moved : !path.sharesUplink(own)) return true;
  return std::none_of(subflows_.begin(), subflows_.end(), [&](const Subflow* s) {
    return s != &own && (isOwn || !s->sharesUplink(own)) && s->admission().takesData() &&
           fits(unit.packet.size(), *s);
  });
}

// The path that may send the packet now, that it fits, and where it is likely to arrive first.
// Repairs obey window and pacer like new data (RFC 9002 section 7): in an incast the losses are the
// congestion. Data moved off a silent path has a priority allowance of some datagrams, because the
// losses of a dead path say nothing about the other paths.
inline Subflow* Repairs::pathFor(const DataUnit& unit, Time now) const {
  Subflow* best = nullptr;
  for (Subflow* s : subflows_) {
    if (s->admission().opensForRepairAt(unit.moved) > now || !fits(unit.packet.size(), *s))
      continue;
    if (!mayUse(unit, *s, now)) continue;
    if (!best || s->path().expectedDelay() < best->path().expectedDelay()) best = s;
  }
  return best;
}

}  // namespace braid
