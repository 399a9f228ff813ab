#include "simnet/fabric/port.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::sim {

namespace {
constexpr double kFullPacket = 1500;  // RED's unit of time
}  // namespace

Port::Port(const PortOptions& options, uint64_t seed)
    : options_(options),
      nanosecondsPerByte_(8e9 / options.rate),
      random_(seed),
      loss_(random_.fork()),
      red_(Duration(static_cast<int64_t>(kFullPacket * nanosecondsPerByte_)),
           options.thresholdPackets > 0 ? static_cast<double>(options.thresholdPackets)
                                        : Red::kMin) {
  loss_.setOptions(options_.losses);
}

void Port::setLosses(const LinkOptions& losses) {
  options_.losses = losses;
  loss_.setOptions(losses);
}

void Port::push(Parcel&& parcel, Time now) {
  advance(now);
  ++counters_.in;
  if (!admits(parcel, now)) {
    ++counters_.dropped;
    return;
  }
  append(std::move(parcel), now);
  advance(now);
  counters_.mostWaiting = std::max(counters_.mostWaiting, line_.size() - begun_);
}

bool Port::pop(Parcel& out) {
  advance(line_.front().deliver);
  bool arrives = !line_.front().lost;
  if (arrives) out = std::move(line_.front().parcel);
  line_.popFront();
  --begun_;
  return arrives;
}

// Moves packets from the queue to the cable when their transmission has begun.
void Port::advance(Time now) {
  while (begun_ < line_.size() && line_[begun_].start <= now) {
    const Entry& entry = line_[begun_++];
    waitingBytes_ -= entry.parcel.bytes;
    counters_.sentBytes += entry.parcel.bytes;
    if (begun_ == line_.size()) emptySince_ = entry.start;
  }
}

// Marks the packet if it is to be marked; false when it is to be dropped.
bool Port::admits(Parcel& parcel, Time now) {
  size_t packets = line_.size() - begun_;
  const PortOptions& o = options_;
  if (o.discipline == Discipline::kRedEcn && red_.hits(packets, emptySince_, now, random_)) {
    if (!markCe(parcel)) return false;
    ++counters_.marked;
  }
  if (o.discipline == Discipline::kDctcp) {
    bool above = (o.thresholdPackets > 0 && packets > o.thresholdPackets) ||
                 (o.thresholdBytes > 0 && waitingBytes_ > o.thresholdBytes);
    if (above) mark(parcel);
  }
  if (busyUntil_ <= now) return true;  // the packet need not wait
  bool full = (o.packets > 0 && packets >= o.packets) ||
              (o.bytes > 0 && waitingBytes_ + parcel.bytes > o.bytes);
  return !full || (o.discipline == Discipline::kDropRand && makesRoom());
}

// Drops a random packet: a waiting one, behind which the others move up, or the arriving one.
bool Port::makesRoom() {
  size_t packets = line_.size() - begun_;
  size_t victim = random_.below(packets + 1);
  if (victim == packets) return false;
  size_t at = begun_ + victim;
  ++counters_.dropped;
  Time free = line_[at].start;
  waitingBytes_ -= line_[at].parcel.bytes;
  for (; at + 1 < line_.size(); ++at) {
    line_[at].parcel = std::move(line_[at + 1].parcel);
    line_[at].lost = line_[at + 1].lost;
    line_[at].start = free;
    settle(line_[at], free);
    free = busyUntil_;
  }
  line_.popBack();
  busyUntil_ = free;
  return true;
}

void Port::append(Parcel&& parcel, Time now) {
  Entry entry;
  entry.start = std::max(busyUntil_, now);
  entry.parcel = std::move(parcel);
  loss_.count();
  entry.lost = loss_.verdict() != LossModel::Verdict::kKeep;
  counters_.lost += entry.lost;
  settle(entry, entry.start);
  waitingBytes_ += entry.parcel.bytes;
  line_.pushBack(std::move(entry));
}

// Reserves the transmitter for the packet from the time `from` on.
void Port::settle(Entry& entry, Time from) {
  auto time = static_cast<int64_t>(
      std::llround(static_cast<double>(entry.parcel.bytes) * nanosecondsPerByte_));
  busyUntil_ = from + Duration(time);
  entry.deliver = busyUntil_ + options_.delay;
}

}  // namespace braid::sim
