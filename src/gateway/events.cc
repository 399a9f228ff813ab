#include "gateway/events.h"

#include <spdlog/spdlog.h>

#include <string>

namespace braid {

namespace {

spdlog::level::level_enum levelOf(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kPeerDown:
    case Event::Kind::kPeerReplaced:
    case Event::Kind::kHandshakeFailed:
    case Event::Kind::kSubflowFailed:
    case Event::Kind::kCapReached:
    case Event::Kind::kForgedAck:
    case Event::Kind::kDirect:
      return spdlog::level::warn;
    case Event::Kind::kRekeyed:
      return spdlog::level::debug;
    default:
      return spdlog::level::info;
  }
}

bool changesInitiators(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kPeerUp:
    case Event::Kind::kPeerDown:
    case Event::Kind::kPeerInUse:
    case Event::Kind::kPeerReplaced:
    case Event::Kind::kSubflowUp:
    case Event::Kind::kAddressChanged:
      return true;
    default:
      return false;
  }
}

void note(Event::Kind kind, EventChanges& out) {
  bool isFailure = kind == Event::Kind::kSubflowFailed;
  out.peers |= kind == Event::Kind::kPeerUp || kind == Event::Kind::kPeerDown;
  out.initiators |= changesInitiators(kind);
  out.paths |= changesInitiators(kind) || kind == Event::Kind::kSubflowSuspect || isFailure;
  out.failures |= isFailure;
}

}  // namespace

EventChanges takeEvents(Tunnel& tunnel, HistoryRecorder& history, LogLimiter& log, Time now) {
  EventChanges out;
  size_t count = 0;
  for (Event e; tunnel.pollEvent(e); ++count) {
    history.onEvent(e);
    note(e.kind, out);
    uint64_t suppressed = 0;
    bool handshake = e.kind == Event::Kind::kHandshakeFailed;
    if (!log.allow(handshake ? LogKind::kHandshake : LogKind::kSubflow, now, suppressed)) continue;
    std::string who = e.peer.empty() ? std::string() : "peer " + e.peer + ": ";
    spdlog::log(levelOf(e.kind), "{}{}{}", who, e.text, LogLimiter::suffix(suppressed));
  }
  if (count < EventQueue::kMost) return out;
  return {.peers = true, .initiators = true, .paths = true, .failures = true};
}

void announce(const Event& event, HistoryRecorder& history) {
  spdlog::log(levelOf(event.kind), "{}", event.text);
  history.onEvent(event);
}

}  // namespace braid
