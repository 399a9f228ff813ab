#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/containers.h"
#include "base/random.h"
#include "base/time.h"
#include "simnet/link/link_options.h"
#include "simnet/link/loss_model.h"
#include "simnet/link/policer_bucket.h"
#include "simnet/link/transmitter.h"

namespace braid {

/// What a link may do to an item, as free functions in the namespace of the item's type. A missing
/// function turns its feature off for that type.
/// - `bool clearEcn(Item&)` sets Not-ECT; false when the item is Not-ECT already.
/// - `bool markCe(Item&)` sets CE; false when the item is not ECN-capable or has CE already.
/// - `void corrupt(Item&, Random&)` flips one random bit.
/// - `std::optional<Item> clone(const Item&)` copies the item for duplication; nullopt when there
///   is no memory for it. Without clone() the copy constructor is used.
template <class Item>
concept HasMarkCe = requires(Item& item) {
  { markCe(item) } -> std::same_as<bool>;
};
template <class Item>
concept HasClearEcn = requires(Item& item) {
  { clearEcn(item) } -> std::same_as<bool>;
};
template <class Item>
concept HasCorrupt = requires(Item& item, Random& random) {
  corrupt(item, random);
};
template <class Item>
concept HasClone = requires(const Item& item) {
  { clone(item) } -> std::same_as<std::optional<Item>>;
};

/// One direction of a modelled link; LinkOptions describes what happens to a packet. The link has
/// no clock: callers pass `now`, which must not decrease. The same seed and calls give the same
/// results. Item must be movable and default-constructible; the link uses nothing else of it except
/// the functions above. All times of a packet are computed when it is pushed, so a call takes O(1)
/// amortised (O(log n) for a trace of n steps) and setOptions() O(packets inside). Memory: the
/// queue limit bounds the waiting packets; rate x delay bounds those on the wire (with an unlimited
/// rate only the caller does).
template <class Item>
class Link {
 public:
  /// A rate trace starts at `now`.
  Link(LinkOptions options, uint64_t seed, Time now = {});

  /// Sends a packet that takes `bytes` on the wire. False when it will never arrive, for any cause;
  /// the item is then gone.
  bool push(Item item, size_t bytes, Time now);
  /// The time at which pop() has an item; kNever when nothing is inside.
  Time nextDelivery() const;
  /// Keeps *slot equal to nextDelivery(), so that the owner of many links can read one array
  /// instead of each link. `slot` must outlive the link, and the link must not be copied or moved
  /// from then on. nullptr stops the updates.
  void publish(Time* slot) {
    published_ = slot;
    publish();
  }
  /// The next item that has arrived by `now`, or nullopt. Call it until it returns nullopt.
  std::optional<Item> pop(Time now);

  /// Changes the options for packets pushed from now on. Rate and delay also change for packets
  /// that are not fully transmitted yet; the packet in transmission keeps the bits that have left.
  /// A shorter delay never causes overtaking. The trace and the count for dropPackets restart only
  /// when their own option changes.
  void setOptions(LinkOptions options, Time now);
  /// Restarts the count of LinkOptions::dropPackets: the next packet is number 1.
  void restartDropCount() { loss_.restartCount(); }
  const LinkOptions& options() const { return options_; }
  LinkStats stats(Time now);

  /// Called when a packet's transmission begins, with the time that the packet waited and whether
  /// it will arrive (is not lost on the wire). Unset by default.
  std::function<void(Duration waited, bool arrives)> onBegin;

 private:
  enum class Fate : uint8_t { kArrives, kHeld, kLost };
  struct Entry {
    ExactTime start;   // transmission begins, or continued after the last change of rate
    double bits = 0;   // from start on
    Time arrival{};    // at the queue
    Time deliver{};    // kArrives only
    Duration extra{};  // jitter
    size_t bytes = 0;
    Fate fate = Fate::kLost;
    bool twice = false;
    Item item{};
  };
  struct Held {
    Time deliver{};
    size_t bytes = 0;
    bool twice = false;
    Item item{};
  };

  static std::optional<PolicerBucket> bucketOf(const LinkOptions& options, Time now);
  bool enters(size_t bytes, Time now);
  Fate fateOnWire(size_t bytes);
  bool dropsEcn(Item& item, size_t bytes);
  void alter(Item& item, size_t waiting);
  void settle(Entry& entry, Held* held, Time lastHeld);
  void advance(Time now);
  void skipAbsent();
  void publish() {
    if (published_) *published_ = nextDelivery();
  }
  void reschedule(const Transmitter& old, Time now);
  void loseFrom(size_t first);
  template <class Slot>
  std::optional<Item> duplicate(Slot& slot);

  LinkOptions options_;
  Random draws_;  // source of the generators below
  LossModel loss_;
  std::optional<PolicerBucket> policer_;
  Random jitterRandom_;
  Random duplicateRandom_;
  Random corruptRandom_;
  Random reorderRandom_;
  Transmitter transmitter_;
  size_t queueLimit_;
  ExactTime busyUntil_;
  Time lastDeliver_ = Time::min();

  // Packets in order of arrival. The transmission of [0, begun_) has begun; the last of these may
  // still be in transmission. The rest waits. next_ is the first packet still to be delivered from
  // here. Entries before both are removed, except the one whose transmission began last:
  // reschedule() needs its progress.
  Ring<Entry> line_;
  size_t begun_ = 0;
  size_t next_ = 0;
  Ring<Held> held_;  // the items of kHeld entries, in order
  LinkStats stats_;
  Time* published_ = nullptr;
};

template <class Item>
Link<Item>::Link(LinkOptions options, uint64_t seed, Time now)
    : options_(std::move(options)),
      draws_(seed),
      loss_(draws_.fork()),
      policer_(bucketOf(options_, now)),
      jitterRandom_(draws_.fork()),
      duplicateRandom_(draws_.fork()),
      corruptRandom_(draws_.fork()),
      reorderRandom_(draws_.fork()),
      transmitter_(options_, now),
      queueLimit_(options_.queueBytes ? options_.queueBytes : defaultQueueBytes(options_)),
      busyUntil_{now} {
  loss_.setOptions(options_);
}

template <class Item>
bool Link<Item>::push(Item item, size_t bytes, Time now) {
  advance(now);
  stats_.in.add(bytes);
  loss_.count();
  if (dropsEcn(item, bytes) || !enters(bytes, now)) return false;
  Entry entry;
  entry.fate = fateOnWire(bytes);
  entry.start = std::max(busyUntil_, ExactTime{now});
  entry.bits = static_cast<double>(bytes) * 8;
  entry.arrival = now;
  entry.bytes = bytes;
  if (options_.jitter > Duration::zero()) {
    entry.extra = Duration(jitterRandom_.below(static_cast<uint64_t>(options_.jitter.count()) + 1));
  }
  bool arrives = entry.fate != Fate::kLost;
  if (arrives) {
    ++stats_.inside;
    entry.twice = options_.duplicate > 0 && duplicateRandom_.chance(options_.duplicate);
    alter(item, stats_.queueBytes);
  }
  if (entry.fate == Fate::kHeld) {
    ++stats_.reordered;
    Held held{{}, bytes, entry.twice, std::move(item)};
    settle(entry, &held, held_.empty() ? Time::min() : held_.back().deliver);
    held_.pushBack(std::move(held));
  } else {
    if (arrives) entry.item = std::move(item);
    settle(entry, nullptr, {});
  }
  line_.pushBack(std::move(entry));
  stats_.queueBytes += bytes;
  advance(now);
  publish();
  stats_.queueBytesMax = std::max(stats_.queueBytesMax, stats_.queueBytes);
  return arrives;
}

template <class Item>
Time Link<Item>::nextDelivery() const {
  Time t = next_ < line_.size() ? line_[next_].deliver : kNever;
  return held_.empty() ? t : std::min(t, held_.front().deliver);
}

template <class Item>
std::optional<Item> Link<Item>::pop(Time now) {
  if (nextDelivery() > now) return std::nullopt;
  advance(now);
  bool fromHeld =
      !held_.empty() && (next_ == line_.size() || held_.front().deliver < line_[next_].deliver);
  std::optional<Item> item;
  if (fromHeld) {
    if ((item = duplicate(held_.front()))) return item;
    item = std::move(held_.front().item);
    held_.popFront();
  } else {
    if ((item = duplicate(line_[next_]))) return item;
    item = std::move(line_[next_++].item);
    skipAbsent();
  }
  publish();
  --stats_.inside;
  return item;
}

template <class Item>
void Link<Item>::setOptions(LinkOptions options, Time now) {
  advance(now);
  bool newRate = options.trace != options_.trace ||
                 (options.trace.empty() && options.rateBitsPerSecond != options_.rateBitsPerSecond);
  bool newTimes = newRate || options.delay != options_.delay || (options.down && !options_.down);
  if (options.policer != options_.policer) policer_ = bucketOf(options, now);
  options_ = std::move(options);
  queueLimit_ = options_.queueBytes ? options_.queueBytes : defaultQueueBytes(options_);
  loss_.setOptions(options_);
  if (!newTimes) return;
  Transmitter old = transmitter_;
  if (newRate) transmitter_ = Transmitter(options_, now);
  reschedule(old, now);
  publish();
}

template <class Item>
LinkStats Link<Item>::stats(Time now) {
  advance(now);
  return stats_;
}

template <class Item>
std::optional<PolicerBucket> Link<Item>::bucketOf(const LinkOptions& options, Time now) {
  if (options.policer.bitsPerSecond <= 0) return std::nullopt;
  return PolicerBucket(options.policer, now);
}

/// The checks before the wire. Counts a packet that fails one of them.
template <class Item>
bool Link<Item>::enters(size_t bytes, Time now) {
  if (options_.down) return stats_.dropDown.add(bytes), false;
  if (options_.mtu > 0 && bytes > options_.mtu) return stats_.dropMtu.add(bytes), false;
  if (policer_ && !policer_->take(bytes, now)) return stats_.dropPolicer.add(bytes), false;
  bool waits = busyUntil_.rounded() > now;
  if (waits && stats_.queueBytes + bytes > queueLimit_) return stats_.dropQueue.add(bytes), false;
  return true;
}

template <class Item>
typename Link<Item>::Fate Link<Item>::fateOnWire(size_t bytes) {
  bool held = options_.reorder > 0 && reorderRandom_.chance(options_.reorder);
  switch (loss_.verdict()) {
    case LossModel::Verdict::kKeep:
      return held ? Fate::kHeld : Fate::kArrives;
    case LossModel::Verdict::kExact:
      stats_.dropExact.add(bytes);
      break;
    case LossModel::Verdict::kBurst:
      stats_.dropBurst.add(bytes);
      break;
    case LossModel::Verdict::kLoss:
      stats_.dropLoss.add(bytes);
      break;
  }
  return Fate::kLost;
}

/// True when EcnFault::kDrop drops the packet, which is then counted.
template <class Item>
bool Link<Item>::dropsEcn([[maybe_unused]] Item& item, [[maybe_unused]] size_t bytes) {
  if constexpr (HasClearEcn<Item>) {
    if (options_.ecnFault == EcnFault::kDrop && clearEcn(item))
      return stats_.dropEcn.add(bytes), true;
  }
  return false;
}

/// Marks, bleaches and corrupts an item as the options say. `waiting`: bytes in the queue before
/// it.
template <class Item>
void Link<Item>::alter([[maybe_unused]] Item& item, [[maybe_unused]] size_t waiting) {
  if constexpr (HasMarkCe<Item>) {
    bool full = options_.ecnThresholdBytes > 0 && waiting > options_.ecnThresholdBytes;
    if ((full || options_.ecnFault == EcnFault::kMangle) && markCe(item)) ++stats_.marked;
  }
  if constexpr (HasClearEcn<Item>) {
    if (options_.ecnFault == EcnFault::kBleach) stats_.bleached += clearEcn(item);
  }
  if constexpr (HasCorrupt<Item>) {
    if (options_.corrupt > 0 && corruptRandom_.chance(options_.corrupt)) {
      corrupt(item, corruptRandom_);
      ++stats_.corrupted;
    }
  }
}

/// Reserves the transmitter for an entry whose start and bits are set. Sets the delivery time of
/// the entry, or of its held item.
template <class Item>
void Link<Item>::settle(Entry& entry, Held* held, Time lastHeld) {
  busyUntil_ = transmitter_.finish(entry.start, entry.bits);
  Time arrives = busyUntil_.rounded() + options_.delay + entry.extra;
  if (held) {
    held->deliver = std::max(lastHeld, arrives + options_.reorderDelay);
  } else if (entry.fate == Fate::kArrives) {
    entry.deliver = lastDeliver_ = std::max(lastDeliver_, arrives);
  }
}

template <class Item>
void Link<Item>::advance(Time now) {
  while (begun_ < line_.size() && line_[begun_].start.rounded() <= now) {
    const Entry& entry = line_[begun_++];
    stats_.queueBytes -= entry.bytes;
    Duration waited = entry.start.rounded() - entry.arrival;
    stats_.queueDelayMax = std::max(stats_.queueDelayMax, waited);
    if (onBegin) onBegin(waited, entry.fate != Fate::kLost);
  }
  skipAbsent();
  while (begun_ > 1 && next_ > 0) {
    line_.popFront();
    --begun_;
    --next_;
  }
}

/// Moves next_ past entries that have nothing to deliver from the line.
template <class Item>
void Link<Item>::skipAbsent() {
  while (next_ < line_.size() && line_[next_].fate != Fate::kArrives) ++next_;
}

/// Recomputes the times of all packets that are not fully transmitted.
template <class Item>
void Link<Item>::reschedule(const Transmitter& old, Time now) {
  size_t first = begun_;
  ExactTime at{now};
  if (begun_ > 0) {
    Entry& current = line_[begun_ - 1];
    if (old.finish(current.start, current.bits) > at) {
      current.bits =
          std::clamp(current.bits - old.bitsBetween(current.start, at), 0.0, current.bits);
      current.start = at;
      first = begun_ - 1;
    }
  }
  if (options_.down) loseFrom(first);
  size_t heldSlot = held_.size();
  for (size_t i = first; i < line_.size(); ++i) heldSlot -= line_[i].fate == Fate::kHeld;
  lastDeliver_ = Time::min();
  for (size_t i = first; i-- > 0 && lastDeliver_ == Time::min();) {
    if (line_[i].fate == Fate::kArrives) lastDeliver_ = line_[i].deliver;
  }
  busyUntil_ = at;
  for (size_t i = first; i < line_.size(); ++i) {
    line_[i].start = busyUntil_;
    bool held = line_[i].fate == Fate::kHeld;
    Time lastHeld = held && heldSlot > 0 ? held_[heldSlot - 1].deliver : Time::min();
    settle(line_[i], held ? &held_[heldSlot++] : nullptr, lastHeld);
  }
  advance(now);
}

/// Drops the entries from `first` on because the link has gone down.
template <class Item>
void Link<Item>::loseFrom(size_t first) {
  while (line_.size() > first) {
    Entry& entry = line_.back();
    if (entry.fate != Fate::kLost) {
      --stats_.inside;
      stats_.dropDown.add(entry.bytes);
    }
    if (entry.fate == Fate::kHeld) held_.popBack();
    if (line_.size() > begun_) stats_.queueBytes -= entry.bytes;
    line_.popBack();
  }
  begun_ = std::min(begun_, first);
  next_ = std::min(next_, first);
}

/// Counts a delivery. If the item is to arrive twice, returns the first of the two, a copy.
template <class Item>
template <class Slot>
std::optional<Item> Link<Item>::duplicate(Slot& slot) {
  stats_.delivered.add(slot.bytes);
  std::optional<Item> copy;
  if (!slot.twice) return copy;
  slot.twice = false;
  if constexpr (HasClone<Item>) {
    copy = clone(std::as_const(slot.item));
  } else if constexpr (std::is_copy_constructible_v<Item>) {
    copy = slot.item;
  }
  stats_.duplicated += copy.has_value();
  return copy;
}

}  // namespace braid
