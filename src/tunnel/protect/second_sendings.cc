#include "tunnel/protect/second_sendings.h"

#include <utility>

#include "tunnel/lane/flow.h"

namespace braid {

void SecondSendings::add(const Datum* datum) {
  context_.ledger.hold(datum);
  waiting_.pushBack(std::move(datum));
  if (waiting_.size() > kMost) dropFirst();
}

void SecondSendings::clear() {
  while (!waiting_.empty()) dropFirst();
}

void SecondSendings::dropFirst() {
  context_.ledger.forget(waiting_.front());
  waiting_.popFront();
}

bool SecondSendings::isWanted(const Datum& datum, Time now) const {
  return !datum.done && !datum.queued && !datum.copied && !context_.ledger.isTooLate(datum, now);
}

bool SecondSendings::findPath(const Datum& datum, Subflow*& open, Time now) const {
  bool same = policies_.of(datum.flow->recoveryClass()).duplication() == Duplication::kSamePath;
  bool any = false;
  open = nullptr;
  for (Subflow* s : context_.subflows) {
    if (!s->gate().takesData() || (s->id() == datum.subflow) != same) continue;
    if (!fits(datum.packet.size(), *s)) continue;
    any = true;
    if (s->gate().isOpen(now) && (!open || s->path().rtt().smoothed() < open->path().rtt().smoothed()))
      open = s;
  }
  return any;
}

bool SecondSendings::poll(Datagram& out, Time now) {
  while (!waiting_.empty()) {
    const Datum* datum = waiting_.front();
    Subflow* path = nullptr;
    bool sent = false;
    if (isWanted(*datum, now) && findPath(*datum, path, now)) {
      if (!path) return false;
      Packet buffer = context_.pool.allocate();
      if (!buffer) return false;
      DatagramBuilder build(*path, std::move(buffer));
      build.addCopy(datum);
      Subflow& of = context_.subflows.at(datum->subflow);
      if (!datum->coded) of.sender().tally().onProtected();
      sent = sendCopies(context_, build, of, datum->pn, out, now);
    }
    dropFirst();
    if (sent) return true;
  }
  return false;
}

}  // namespace braid
