#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/packet.h"
#include "base/ring.h"
#include "base/time.h"

namespace braid {

/// What a Resequencer has let go, in order. A repaired hole frees all that was held behind it at once: TCP takes that,
/// but the socket of a datagram program holds fewer packets than a fast path brings in a round trip (a hundred with
/// Linux's default), and what does not fit is lost. So datagrams that were held leave in portions. Of other flows
/// nothing waits for them.
class ReleaseQueue {
 public:
  /// Packets of a portion; a quarter of what waits where that is more, so that nothing waits for long. Ours.
  static constexpr size_t kPortion = 16;
  static constexpr Duration kInterval = 1ms;

  /// A flow that leaves in portions: how many of its packets wait for theirs. The queue alone writes it, and it must stay
  /// where it is while some do.
  class Paced {
   public:
    bool waits() const { return count_ > 0; }

   private:
    friend class ReleaseQueue;
    uint32_t count_ = 0;
  };

  /// What follows happens now.
  void begin(Time now) { now_ = now, left_ = kPortion; }
  /// A packet that was not held; `of`: its flow, nullptr for one that is not paced.
  void pass(Packet packet, Paced* of) {
    if (of && of->waits()) return wait(std::move(packet), *of);
    ready_.pushBack(std::move(packet));
  }
  /// A packet that was held.
  void release(Packet packet, Paced* of) {
    if (of && (left_ == 0 || of->waits())) return wait(std::move(packet), *of);
    left_ -= of != nullptr;
    ready_.pushBack(std::move(packet));
  }
  void onTimer(Time now) {
    if (now < nextDeadline()) return;
    next_ = now + kInterval;
    move(std::max(kPortion, later_.size() / 4));
  }
  /// All of it leaves at once.
  void flush() { move(later_.size()); }
  /// kNever when no portion waits.
  Time nextDeadline() const { return later_.empty() ? kNever : next_; }
  bool poll(Packet& out) {
    if (ready_.empty()) return false;
    out = std::move(ready_.front());
    ready_.popFront();
    return true;
  }
  /// All that poll() has not given.
  size_t size() const { return ready_.size() + later_.size(); }
  /// Of those, what waits for its portion.
  size_t waiting() const { return later_.size(); }

 private:
  struct Waiting {
    Packet packet;
    Paced* of = nullptr;
  };

  void wait(Packet packet, Paced& of) {
    if (later_.empty()) next_ = now_ + kInterval;
    ++of.count_;
    later_.pushBack({std::move(packet), &of});
  }
  void move(size_t count) {
    for (; count > 0 && !later_.empty(); --count) {
      --later_.front().of->count_;
      ready_.pushBack(std::move(later_.front().packet));
      later_.popFront();
    }
  }

  Ring<Packet> ready_;
  Ring<Waiting> later_;
  size_t left_ = 0;  // of this portion
  Time now_{};
  Time next_{};  // the next portion
};

}  // namespace braid
