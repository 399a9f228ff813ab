#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace braid {

struct CodelOptions {
  Duration target = 5ms;      ///< RFC 8289 section 4.2
  Duration interval = 100ms;  ///< RFC 8289 section 4.3
  size_t maxPacket = 1514;    ///< bytes; a queue with at most this many is never a standing queue
};

/// CoDel, controlled delay (RFC 8289 section 5). When packets have waited longer than `target` for
/// a whole `interval` (a standing queue), drops or marks packets at the head of the queue, at ever
/// shorter intervals, until the queue no longer stands. Marking follows fq_codel (RFC 8290): a
/// marked packet counts as dropped but is sent.
///
/// The object is the state of one queue. At first it is not dropping. The dropping state begins
/// when the queue has stood for an interval, and ends when a packet has waited for less than the
/// target.
class Codel {
 public:
  /// Takes the next packet to send out of `queue`, and drops those before it that the control law
  /// says. False when the queue is empty then. `Queue` has
  ///
  ///     bool pull()               makes the first packet the current one; false when there is none
  ///     Duration sojourn() const  how long the current packet was queued
  ///     size_t bytes() const      bytes left in the queue
  ///     bool mark()               marks the current packet CE (RFC 3168); false when it cannot be
  ///     void drop()               drops the current packet
  template <typename Queue>
  bool dequeue(Queue& queue, const CodelOptions& options, Time now);

  bool dropping() const { return dropping_; }
  /// `count` of RFC 8289: packets dropped or marked in the dropping state, plus the count that the
  /// state began with.
  uint32_t count() const { return count_; }
  Time dropNext() const { return dropNext_; }

 private:
  /// A dropping state at most this many intervals ago sets the first count of the next one (RFC
  /// 8289 section 5.4).
  static constexpr int kReuseIntervals = 16;
  static constexpr Time kNotAbove = Time::min();

  template <typename Queue>
  bool pull(Queue& queue, const CodelOptions& options, Time now, bool& okToDrop);
  bool isStanding(Duration sojourn, size_t bytes, const CodelOptions& options, Time now);
  void enter(const CodelOptions& options, Time now);
  Time controlLaw(Time t, const CodelOptions& options) const;

  // When the sojourn time will have been above the target for an interval.
  Time firstAbove_ = kNotAbove;
  Time dropNext_{};         // when the next packet is dropped, in the dropping state
  uint32_t count_ = 0;      // see count()
  uint32_t lastCount_ = 0;  // count_ at the beginning of the dropping state
  bool dropping_ = false;
};

template <typename Queue>
bool Codel::pull(Queue& queue, const CodelOptions& options, Time now, bool& okToDrop) {
  okToDrop = false;
  if (!queue.pull()) {
    firstAbove_ = kNotAbove;
    return false;
  }
  okToDrop = isStanding(queue.sojourn(), queue.bytes(), options, now);
  return true;
}

template <typename Queue>
bool Codel::dequeue(Queue& queue, const CodelOptions& options, Time now) {
  bool okToDrop;
  bool there = pull(queue, options, now, okToDrop);
  if (dropping_) {
    dropping_ = okToDrop;
    while (dropping_ && now >= dropNext_) {
      ++count_;
      if (queue.mark()) {
        dropNext_ = controlLaw(dropNext_, options);
        return true;
      }
      queue.drop();
      there = pull(queue, options, now, okToDrop);
      dropping_ = okToDrop;
      if (dropping_) dropNext_ = controlLaw(dropNext_, options);
    }
  } else if (okToDrop) {
    if (!queue.mark()) {
      queue.drop();
      there = pull(queue, options, now, okToDrop);
    }
    enter(options, now);
  }
  return there;
}

inline bool Codel::isStanding(Duration sojourn, size_t bytes, const CodelOptions& options,
                              Time now) {
  if (sojourn < options.target || bytes <= options.maxPacket) {
    firstAbove_ = kNotAbove;
    return false;
  }
  if (firstAbove_ == kNotAbove) {
    firstAbove_ = now + options.interval;
    return false;
  }
  return now >= firstAbove_;
}

inline void Codel::enter(const CodelOptions& options, Time now) {
  dropping_ = true;
  uint32_t delta = count_ - lastCount_;
  bool recent = now - dropNext_ < kReuseIntervals * options.interval;
  count_ = delta > 1 && recent ? delta : 1;
  dropNext_ = controlLaw(now, options);
  lastCount_ = count_;
}

inline Time Codel::controlLaw(Time t, const CodelOptions& options) const {
  return t + fromSeconds(toSeconds(options.interval) / std::sqrt(static_cast<double>(count_)));
}

}  // namespace braid
