#include "gateway/proxy/pending_connects.h"

#include <algorithm>

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
  Time patience =
      entry.repeated + (entry.isAnswered ? kJoin : kPause + 2 * (entry.repeated - entry.begun));
  entry.due = std::min(patience, entry.begun + kLongest);
  due_.insert({entry.due, at->first});
}

void PendingConnects::remove(Entries::iterator at) {
  due_.erase({at->second.due, at->first});
  byStream_.erase(at->second.stream);
  entries_.erase(at);
}

void PendingConnects::add(StreamHandle stream, const StreamEnds& ends, Packet syn, Time now) {
  auto at = entries_.try_emplace(ends).first;
  at->second = {.stream = stream, .syn = std::move(syn), .begun = now, .repeated = now};
  byStream_[stream] = at;
  setDue(at);
}

bool PendingConnects::repeat(const StreamEnds& ends, Packet& syn, Time now) {
  auto at = entries_.find(ends);
  if (at == entries_.end()) return false;
  Entry& entry = at->second;
  if (entry.isAnswered && now - entry.givenBack < kEcho) {
    syn = {};
    return true;
  }
  entry.repeated = now;
  setDue(at);
  if (entry.isAnswered) {
    entry.givenBack = now;
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
  entry.begun = entry.repeated = entry.givenBack = now;
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
      output_.pushBack({Way::kTunnel, std::move(entry.syn)});
      return false;
    case StreamCause::kTimedOut:
    case StreamCause::kGone:  // the client's next SYN finds out what is possible then
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

std::optional<StreamHandle> PendingConnects::expire(Time now) {
  if (due_.empty() || deadline() > now) return std::nullopt;
  auto at = entries_.find(due_.begin()->second);
  StreamHandle stream = at->second.stream;
  remove(at);
  return stream;
}

std::optional<PendingConnects::Output> PendingConnects::poll() {
  if (output_.empty()) return std::nullopt;
  Output out = std::move(output_.front());
  output_.popFront();
  return out;
}

}  // namespace braid
