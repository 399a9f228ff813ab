#include "tunnel/session/repairs.h"

#include <algorithm>

#include "tunnel/lane/flow.h"
#include "tunnel/subflow/datagram_builder.h"

namespace braid {

namespace {
/// Packets waiting for repair that are looked at for one whose own path is open. Ours.
constexpr int kRepairTries = 32;
/// Packets that protection may give back any moment, which are passed over to find them. Ours.
constexpr int kAnswersAwaited = 256;
}  // namespace

// With the best path for all it is the first one or none; a path of its own may be closed while another's is
// open.
const Datum* Repairs::pick(Subflow*& path, Time now) {
  const Datum* datum = first(now);
  int left = kAnswersAwaited;
  for (int tries = 0; datum && tries < kRepairTries;) {
    if ((path = pathFor(*datum, now))) return datum;
    if (datum->frame != 0 && cut(datum) && (path = pathFor(*datum, now))) return datum;
    const Datum* next = DataLedger::repairAfter(datum);
    if (datum->frame == 0 && isTooLarge(*datum)) {
      owner_.onTooLarge(datum->packet.view());
      ledger_.giveUp(datum, Drop::kTooBig);
    } else {
      ++tries;  // what is given up is gone and costs no other its look
    }
    datum = nextReady(next, left, now);
  }
  return nullptr;
}

// A path that is not usable now may be back, and carry it.
bool Repairs::isTooLarge(const Datum& datum) const {
  return std::none_of(subflows_.begin(), subflows_.end(),
                      [&](const Subflow* s) { return mayFit(datum.packet.size(), *s) || !s->usable(); });
}

// To what the largest of the paths that are usable carries, when none carries all of it now.
bool Repairs::cut(const Datum* datum) {
  size_t largest = 0;
  for (const Subflow* s : subflows_) {
    if (!s->gate().takesData()) continue;
    if (fits(datum->packet.size(), *s)) return false;
    largest = std::max(largest, s->mtu().current());
  }
  return largest > 0 && ledger_.cut(datum, largest - kDatagramOverhead, pool_);
}

// The queue is searched again when it has changed or when the first of those that wait is due.
const Datum* Repairs::first(Time now) {
  const Datum* head = ledger_.nextRepair(now);
  if (ledger_.repairChanges() == noneReady_ && now < readyAt_) return nullptr;
  readyAt_ = kNever;
  int left = kAnswersAwaited;
  const Datum* ready = nextReady(head, left, now);
  noneReady_ = ready ? UINT64_MAX : ledger_.repairChanges();
  return ready;
}

// What a copy or a parity on its way may give back is not sent again before the peer could say so. `left`: so many of
// those are passed over yet.
const Datum* Repairs::nextReady(const Datum* datum, int& left, Time now) {
  for (; datum && left > 0; --left) {
    if (datum->answerDue <= now) return datum;
    readyAt_ = std::min(readyAt_, datum->answerDue);
    datum = DataLedger::repairAfter(datum);
  }
  return nullptr;
}

// Not on the path that just fell silent with it, while another is usable that it fits. A policy that repairs like
// MPTCP keeps it on its path as long as that is alive.
bool Repairs::mayUse(const Datum& datum, const Subflow& path) const {
  const RecoveryPolicy& policy = policies_.of(datum.flow->recoveryClass());
  const Subflow& own = subflows_.at(datum.subflow);
  if (policy.repairPlace() == RepairPlace::kOwnPath && own.gate().takesData() &&
      mayFit(datum.packet.size(), own))
    return datum.subflow == path.id();
  if (!datum.moved || datum.subflow != path.id()) return true;
  for (const Subflow* s : subflows_) {
    if (s->gate().takesData() && s != &path && fits(datum.packet.size(), *s)) return false;
  }
  return true;
}

// The path that may send it now, that the packet fits, and where it is likely to arrive first. What is lost obeys window
// and pacer like new data (RFC 9002 section 7): in an incast the losses are the congestion. What a silent path has held
// may be ahead by some datagrams, as the losses of a dead path tell nothing of the others.
Subflow* Repairs::pathFor(const Datum& datum, Time now) const {
  Subflow* best = nullptr;
  for (Subflow* s : subflows_) {
    if (s->gate().opensForRepairAt(datum.moved) > now || !fits(datum.packet.size(), *s)) continue;
    if (!mayUse(datum, *s)) continue;
    if (!best || s->path().expectedDelay() < best->path().expectedDelay()) best = s;
  }
  return best;
}

}  // namespace braid
