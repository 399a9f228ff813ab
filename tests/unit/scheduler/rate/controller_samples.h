#pragma once

// Samples that the tests of rate control give to a controller. Datagrams have 1000 bytes to keep
// the numbers readable.

#include "scheduler/rate/controller.h"

namespace braid {

inline constexpr uint64_t kBytes = 1000;

constexpr Time at(Duration d) {
  return Time{} + d;
}

/// An ACK 100 ms after its packet left, of a sender that fills its window.
inline AckSample ackOf(const Controller& c, uint64_t bytes, Time sentAt, Duration rtt = 100ms) {
  return {.now = sentAt + rtt,
          .bytes = bytes,
          .largestSentAt = sentAt,
          .rtt = rtt,
          .srtt = rtt,
          .minRtt = rtt,
          .inFlight = c.window()};
}

/// Such an ACK with marks, which it also reports to the controller as the subflow does.
inline void ackMarked(Controller& c, uint64_t bytes, uint64_t marks, Time sentAt,
                      Duration rtt = 100ms) {
  AckSample ack = ackOf(c, bytes, sentAt, rtt);
  ack.marks = marks;
  c.onAck(ack);
  c.onMarks(marks, sentAt, ack.now);
}

inline LossSample lossOf(uint64_t packets, Time sentAt, Time now) {
  return {.now = now, .bytes = packets * kBytes, .packets = packets, .largestSentAt = sentAt};
}

/// Reports marks in every window until the window is minimal. Returns the time after that.
inline Time squeeze(Controller& c, Time from = at(1s)) {
  for (int i = 0; i < 40; ++i, from += 100ms) c.onMarks(1, from, from + 100ms);
  return from + 100ms;
}

}  // namespace braid
