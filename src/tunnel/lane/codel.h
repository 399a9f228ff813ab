#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace braid {

struct CodelOptions {
  Duration target = 5ms;      ///< RFC 8289 section 4.2
  Duration interval = 100ms;  ///< RFC 8289 section 4.3
  size_t maxPacket = 1514;    ///< bytes; a queue that holds no more is never a standing queue
};

/// Controlled delay: when a queue stands for an interval, drop or mark at its head, ever faster until the queue no
/// longer stands (RFC 8289 section 5). Marking follows RFC 8290's fq_codel: a marked packet counts as a drop and
/// goes on.
///
/// The object is the state of one queue: not dropping at first, dropping from when the queue has stood for an
/// interval until its packets wait for less than the target.
class Codel {
 public:
  /// Takes the next packet to send out of `queue`, dropping those before it that the control law says; false
  /// when the queue is empty then. Queue has
  ///
  ///     bool pull()                 takes the first packet into the hand; false when there is none
  ///     Duration sojourn() const    how long the packet in the hand was queued
  ///     size_t bytes() const        bytes left in the queue
  ///     bool mark()                 marks the packet in the hand "congestion experienced"; false when it cannot be
  ///     void drop()                 throws the packet in the hand away
  template <typename Queue>
  bool dequeue(Queue& queue, const CodelOptions& options, Time now);

  bool dropping() const { return dropping_; }
  /// Packets dropped or marked in the dropping state, and what the state began with.
  uint32_t count() const { return count_; }
  Time dropNext() const { return dropNext_; }

 private:
  /// A drop state this recent (in intervals) says where to begin the next (RFC 8289 section 5.4).
  static constexpr int kReuseIntervals = 16;
  static constexpr Time kNotAbove = Time::min();

  template <typename Queue>
  bool pull(Queue& queue, const CodelOptions& options, Time now, bool& okToDrop);
  bool isStanding(Duration sojourn, size_t bytes, const CodelOptions& options, Time now);
  void enter(const CodelOptions& options, Time now);
  Time controlLaw(Time t, const CodelOptions& options) const;

  Time firstAbove_ = kNotAbove;  // when the sojourn time will have been above target for an interval
  Time dropNext_{};              // when the next packet is dropped, in the dropping state
  uint32_t count_ = 0;           // see count()
  uint32_t lastCount_ = 0;       // what the dropping state began with
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

}  // namespace braid
