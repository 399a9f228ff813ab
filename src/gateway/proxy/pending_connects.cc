#include "gateway/proxy/pending_connects.h"

#include <algorithm>
#include <utility>

#include "inet/icmp.h"
#include "inet/tcp.h"

namespace braid {

PendingConnects::Entries::iterator PendingConnects::at(StreamHandle stream) {
  auto found = byStream_.find(stream);
  return found == byStream_.end() ? entries_.end() : found->second;
}

void PendingConnects::setDue(Entries::iterator at) {
  Entry& entry = at->second;
  due_.erase({entry.due, at->first});
  Duration patience = entry.isAnswered ? kJoin : kPause + 2 * (entry.repeated - entry.begun);
  entry.due = std::min(entry.repeated + patience, entry.begun + kLongest);
  due_.insert({entry.due, at->first});
}

void PendingConnects::remove(Entries::iterator at) {
  due_.erase({at->second.due, at->first});
  byStream_.erase(at->second.stream);
  entries_.erase(at);
}

void PendingConnects::add(StreamHandle stream, const Beginning& of, Packet syn, Time now) {
  auto at = entries_.try_emplace(of.ends).first;
  at->second = {.stream = stream,
                .syn = std::move(syn),
                .sequence = of.sequence,
                .begun = now,
                .repeated = now};
  byStream_[stream] = at;
  setDue(at);
}

bool PendingConnects::isCopy(const Beginning& of) const {
  auto at = entries_.find(of.ends);
  return at != entries_.end() && at->second.sequence == of.sequence;
}

bool PendingConnects::repeat(const Beginning& of, Packet& syn, Time now) {
  auto at = entries_.find(of.ends);
  if (at == entries_.end()) return false;
  Entry& entry = at->second;
  entry.sequence = of.sequence;
  entry.repeated = now;
  setDue(at);
  if (entry.isAnswered) {
    output_.pushBack({Way::kListener, std::move(syn)});
  } else {
    entry.syn = std::move(syn);
  }
  return true;
}

const StreamEnds* PendingConnects::find(StreamHandle stream) const {
  auto found = byStream_.find(stream);
  return found == byStream_.end() ? nullptr : &found->second->first;
}

void PendingConnects::onAnswer(StreamHandle stream, Time now) {
  auto at = this->at(stream);
  if (at == entries_.end() || at->second.isAnswered) return;
  Entry& entry = at->second;
  entry.isAnswered = true;
  entry.begun = entry.repeated = now;
  setDue(at);
  output_.pushBack({Way::kListener, std::move(entry.syn)});
}

// The listener may have accepted a connection whose destination had accepted it: join() must then
// say that it has ended.
bool PendingConnects::onReset(StreamHandle stream, StreamCause cause, Time now) {
  auto at = this->at(stream);
  if (at == entries_.end()) return false;
  Entry& entry = at->second;
  if (!entry.isAnswered) {
    bool isRefused = refuse(entry, cause);
    remove(at);
    return isRefused;
  }
  byStream_.erase(stream);
  entry.stream = {};
  entry.repeated = now;
  setDue(at);
  return false;
}

bool PendingConnects::refuse(Entry& entry, StreamCause cause) {
  Packet answer;
  switch (cause) {
    case StreamCause::kReset:
    case StreamCause::kRefused:
      answer = buildTcpRefusal(pool_, entry.syn.view());
      break;
    case StreamCause::kUnreachable:
      answer = buildUnreachable(pool_, entry.syn.view(), Unreachable::kHost);
      break;
    case StreamCause::kLimit:
    case StreamCause::kForbidden:
    case StreamCause::kGone:  // the far gateway has connected nothing, or has reset it
      output_.pushBack({Way::kTunnel, std::move(entry.syn)});
      return false;
    case StreamCause::kTimedOut:
      break;
  }
  if (answer) output_.pushBack({Way::kHost, std::move(answer)});
  return true;
}

std::optional<StreamHandle> PendingConnects::join(const StreamEnds& ends) {
  auto at = entries_.find(ends);
  if (at == entries_.end()) return std::nullopt;
  StreamHandle stream = at->second.stream;
  remove(at);
  return stream;
}

std::optional<PendingConnects::Expired> PendingConnects::expire(Time now) {
  if (due_.empty() || deadline() > now) return std::nullopt;
  auto at = entries_.find(due_.begin()->second);
  Expired out{at->second.stream, at->second.isAnswered};
  remove(at);
  return out;
}

std::optional<PendingConnects::Output> PendingConnects::poll() {
  if (output_.empty()) return std::nullopt;
  return output_.takeFront();
}

}  // namespace braid
