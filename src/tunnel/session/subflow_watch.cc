#include "tunnel/session/subflow_watch.h"

#include <string>

namespace braid {

void SubflowWatch::settle(Time now) {
  SubflowEvent event;
  while (events_.poll(event)) onEvent(event, now);
}

void SubflowWatch::onEvent(const SubflowEvent& event, Time now) {
  const Subflow& s = subflows_.at(event.subflow);
  switch (event.kind) {
    case SubflowEvent::Kind::kState:
      return onStateChange(s);
    case SubflowEvent::Kind::kAddress:
      return owner_.onEvent(
          {Event::Kind::kAddressChanged,
           {},
           "subflow " + std::to_string(s.id()) + " is now at " + s.route().remote.toString()});
    case SubflowEvent::Kind::kControlDelivered:
      return controls_.onFate(event.subflow, event.packetNumber, true);
    case SubflowEvent::Kind::kControlLost:
      return controls_.onFate(event.subflow, event.packetNumber, false);
    case SubflowEvent::Kind::kPacketLost:
      return trace_.note({.kind = TraceEvent::Kind::kPacketLost,
                          .time = now,
                          .subflow = event.subflow,
                          .pn = event.packetNumber,
                          .lossRate = event.lossRate});
  }
}

void SubflowWatch::onStateChange(const Subflow& s) {
  duties_.onChange();
  switch (s.state()) {
    case Subflow::State::kValidating:
      break;
    case Subflow::State::kActive: {
      bool normal = s.preference().use == PathUse::kNormal;
      owner_.onEvent(eventOf(s, Event::Kind::kSubflowUp, normal ? "is in use" : "is usable"));
      duties_.onUsable(s);
      break;
    }
    case Subflow::State::kSuspect:
      owner_.onEvent(eventOf(s, Event::Kind::kSubflowSuspect, "is silent, its packets are moved"));
      break;
    case Subflow::State::kClosed:
      owner_.onEvent(eventOf(s, Event::Kind::kSubflowFailed, "lost its uplink"));
      break;
  }
}

}  // namespace braid
