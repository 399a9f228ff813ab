#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"

namespace braid {

/// The packets that the Resequencer, its owner, has put into order, until they are polled.
///
/// A hole that is filled releases everything behind it at once. TCP can take that. But the socket
/// of a datagram program holds fewer packets (about a hundred with Linux's default) than a fast
/// path brings in one round trip, and drops the rest. Therefore datagrams that waited behind a hole
/// are paced: kPortion of them are ready at once, and the others in a portion each kInterval.
/// Packets of other flows do not wait for them, and the order within a flow is kept.
class ReleaseQueue {
 public:
  /// A portion has this many packets, or a quarter of those that wait if that is more, so that
  /// nothing waits for long.
  static constexpr size_t kPortion = 16;
  static constexpr Duration kInterval = 1ms;

  /// State of a flow that is paced, a member of the flow's record. It must not move in memory or be
  /// destroyed while it waits. Only ReleaseQueue writes it.
  class PacedFlow {
   public:
    /// Whether packets of it wait for their portion.
    bool waits() const { return count_ > 0; }

   private:
    friend class ReleaseQueue;
    uint32_t count_ = 0;
  };

  /// Begins the event of `now`: the calls of addInOrder() and addReleased() that follow belong to
  /// it, and share one portion.
  void begin(Time now) { now_ = now, left_ = kPortion; }
  /// Adds a packet that was not held. `flow`: nullptr if its flow is not paced. It waits only
  /// behind packets of its own flow.
  void addInOrder(Packet packet, PacedFlow* flow) {
    if (flow && flow->waits()) return wait(std::move(packet), *flow);
    ready_.pushBack(std::move(packet));
  }
  /// Adds a packet that was held. If its flow is paced and the portion is used up, it waits.
  void addReleased(Packet packet, PacedFlow* flow) {
    if (flow && (left_ == 0 || flow->waits())) return wait(std::move(packet), *flow);
    left_ -= flow != nullptr;
    ready_.pushBack(std::move(packet));
  }
  /// Makes the next portion ready, if it is due.
  void onTimer(Time now) {
    if (now < nextDeadline()) return;
    next_ = now + kInterval;
    move(std::max(kPortion, later_.size() / 4));
  }
  /// Makes all waiting packets ready at once.
  void flush() { move(later_.size()); }
  /// When the next portion is due; kNever when no packet waits.
  Time nextDeadline() const { return later_.empty() ? kNever : next_; }
  /// Takes the next ready packet; false when there is none.
  bool poll(Packet& out) {
    if (ready_.empty()) return false;
    out = ready_.takeFront();
    return true;
  }
  /// Packets that poll() has not returned yet, ready or waiting.
  size_t size() const { return ready_.size() + later_.size(); }
  /// Packets that wait for their portion.
  size_t waiting() const { return later_.size(); }

 private:
  struct Waiting {
    Packet packet;
    PacedFlow* flow = nullptr;
  };

  void wait(Packet packet, PacedFlow& flow) {
    if (later_.empty()) next_ = now_ + kInterval;
    ++flow.count_;
    later_.pushBack({std::move(packet), &flow});
  }
  void move(size_t count) {
    for (; count > 0 && !later_.empty(); --count) {
      Waiting next = later_.takeFront();
      --next.flow->count_;
      ready_.pushBack(std::move(next.packet));
    }
  }

  Ring<Packet> ready_;
  Ring<Waiting> later_;
  size_t left_ = 0;  // packets that may still become ready in this event
  Time now_{};
  Time next_{};  // when the next portion is due
};

}  // namespace braid
