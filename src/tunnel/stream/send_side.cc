#include "tunnel/stream/send_side.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
/// The driver may write ahead as much as the paths carry in this time. Chosen: the driver comes
/// back sooner.
constexpr Duration kAhead = 8ms;
/// The driver may write ahead at least this many bytes, so that a burst is not cut while nothing is
/// known of the paths.
constexpr size_t kLeastAhead = 32 << 10;
/// Bytes of a unit while no path is known: it fits MtuDiscovery::kMinDatagram.
constexpr size_t kFirstUnit = 1165;
/// A stream that found no buffer asks again after this time.
constexpr Duration kRetry = 5ms;
}  // namespace

StreamSendSide::StreamSendSide(const StreamOptions& options, PacketPool& pool, DrrScheduler& drr,
                               StreamRegistry* registry, uint32_t session)
    : options_(options),
      pool_(pool),
      drr_(drr),
      registry_(registry),
      session_(session),
      queued_(&pool.quota(PacketUse::kQueued)),
      unit_(kFirstUnit),
      ahead_(kLeastAhead) {}

void StreamSendSide::setPaths(size_t unit, double rate) {
  unit_ = unit;
  double ahead = std::min(rate * toSeconds(kAhead), static_cast<double>(options_.queuedBytes));
  ahead_ = std::max(kLeastAhead, static_cast<size_t>(ahead));
}

// ---- what the driver writes

bool StreamSendSide::begin(Stream& stream, Time now) {
  if (!queued_.makeRoom(1)) return false;
  size_t grown = stream.source_.begin(makeFor(stream));
  onWritten(stream, grown, 0, 0, now);
  return grown > 0;
}

SendBuffer::Make StreamSendSide::makeFor(const Stream& stream) const {
  return {pool_, unit_, stream.id_, stream.isKnown_ ? nullptr : &stream.opening_};
}

size_t StreamSendSide::mayWrite(const Stream& stream) const {
  const SendBuffer& source = stream.source_;
  if (source.isFinished() || source.waiting() >= ahead_ || stream.sendLimit_ <= source.end())
    return 0;
  uint64_t last = std::min(stream.sendLimit_, StreamFrame::kEnd - 1);
  return static_cast<size_t>(std::min<uint64_t>(ahead_ - source.waiting(), last - source.end()));
}

size_t StreamSendSide::writable(Stream& stream, size_t wanted) {
  size_t may = mayWrite(stream);
  if (may > 0 && !queued_.makeRoom(may / unit_ + 1)) {
    may = 0;
    starve(stream);
  }
  stream.waits_ = may < wanted;
  return may;
}

// A driver that waits is told when half of what may wait is free, or when it can write all that the
// credit allows.
void StreamSendSide::tellWritable(Stream& stream) {
  if (!stream.waits_ || stream.isStarved_) return;
  size_t may = mayWrite(stream);
  bool isAll = may > 0 && may == stream.sendLimit_ - stream.source_.end();
  if (may < ahead_ / 2 && !isAll) return;
  stream.waits_ = false;
  registry_->tell(stream.handle_, &StreamEvent::writable);
}

size_t StreamSendSide::room(Stream& stream, std::span<ByteSpan> buffers) {
  size_t may = writable(stream, 1);
  size_t count = stream.source_.room(may, buffers, makeFor(stream));
  if (count == 0 && may > 0 && !buffers.empty()) {
    stream.waits_ = true;
    starve(stream);
  }
  return count;
}

void StreamSendSide::commit(Stream& stream, size_t bytes, Time now) {
  SendBuffer& source = stream.source_;
  uint64_t end = source.end();
  size_t packets = source.packets();
  size_t grown = source.commit(bytes, unit_);
  onWritten(stream, grown, packets, static_cast<size_t>(source.end() - end), now);
}

size_t StreamSendSide::write(Stream& stream, ByteView bytes, Time now) {
  SendBuffer& source = stream.source_;
  ByteView left = bytes.first(std::min(bytes.size(), writable(stream, bytes.size())));
  size_t taken = left.size();
  size_t packets = source.packets();
  size_t grown = source.write(left, makeFor(stream));
  taken -= left.size();
  if (!left.empty()) {
    stream.waits_ = true;
    starve(stream);
  }
  onWritten(stream, grown, packets, taken, now);
  return taken;
}

void StreamSendSide::finish(Stream& stream, Time now) {
  SendBuffer& source = stream.source_;
  if (source.isFinished()) return;
  size_t packets = source.packets();
  size_t grown = source.finish(makeFor(stream));
  stream.waits_ = false;
  stream.finishes_ = true;
  if (!source.isFinished()) return starve(stream);
  onWritten(stream, grown, packets, 0, now);
  // Usually the end is marked in the last unit that waits. Then nothing more is queued, so
  // onWritten() did not see it.
  stream.burst.onEnd();
  registry_->touch(session_);
}

// As far as is known the written bytes end a burst: the driver's next call may not come soon.
void StreamSendSide::onWritten(Stream& stream, size_t grown, size_t packets, size_t bytes,
                               Time now) {
  if (grown == 0) return;
  Duration quiet = stream.lastWrite_ == Time::min() ? Duration::max() : now - stream.lastWrite_;
  stream.lastWrite_ = now;
  bool waits = stream.waitingBytes() > 0;
  PacketHint hint;
  hint.push = true;
  stream.burst.onPacket(grown, Delivery::kStream, hint, quiet, waits);
  queuedPackets_ += stream.source_.packets() - packets;
  queued_.setUsed(queuedPackets_);
  sentBytes_ += bytes;
  drr_.onData(stream, grown);
  registry_->touch(session_);
}

// ---- short of buffers

void StreamSendSide::starve(Stream& stream) {
  if (std::exchange(stream.isStarved_, true)) return;
  hungry_.pushBack(stream);
  registry_->touch(session_);
}

void StreamSendSide::feed(Time now) {
  if (now < retryAt_) return;
  retryAt_ = now + kRetry;
  while (Stream* stream = hungry_.front()) {
    if (!queued_.makeRoom(ahead_ / unit_ + 1)) return;
    hungry_.popFront();
    stream->isStarved_ = false;
    if (stream->finishes_) {
      finish(*stream, now);
      if (stream->isStarved_) return;
    }
    tellWritable(*stream);
  }
}

// ---- Lane

const Packet* StreamSendSide::prepare(Flow& flow, Time) {
  auto& stream = static_cast<Stream&>(flow);
  size_t grown = 0;
  size_t packets = stream.source_.packets();
  const Packet* unit = stream.source_.prepare(stream.unit, makeFor(stream), grown);
  onCut(stream, packets, grown);
  return unit;
}

bool StreamSendSide::cut(Flow& flow, size_t size) {
  auto& stream = static_cast<Stream&>(flow);
  SendBuffer::Make make = makeFor(stream);
  make.unit = size;
  size_t grown = 0;
  size_t packets = stream.source_.packets();
  bool isCut = stream.source_.cut(stream.unit, make, grown);
  onCut(stream, packets, grown);
  return isCut;
}

void StreamSendSide::onCut(Stream& stream, size_t packetsBefore, size_t grown) {
  if (grown == 0) return;
  queuedPackets_ += stream.source_.packets() - packetsBefore;
  queued_.setUsed(queuedPackets_);
  drr_.onData(stream, grown);
}

Packet StreamSendSide::handOut(Flow& flow) {
  auto& stream = static_cast<Stream&>(flow);
  Packet unit = stream.source_.handOut();
  queued_.setUsed(--queuedPackets_);
  if (stream.source_.packets() == 0) stream.burst.onDrained();
  tellWritable(stream);
  return unit;
}

// All that was sent has arrived, or the stream is being removed.
void StreamSendSide::onAllDone(Flow& flow) {
  auto& stream = static_cast<Stream&>(flow);
  stream.isKnown_ = true;
  checkLater(stream);
}

// ---- ends

void StreamSendSide::checkLater(Stream& stream) {
  if (std::exchange(stream.isToCheck_, true)) return;
  toCheck_.pushBack(stream);
}

Stream* StreamSendSide::takeToCheck() {
  if (toCheck_.empty()) return nullptr;
  Stream* stream = toCheck_.popFront();
  stream->isToCheck_ = false;
  return stream;
}

void StreamSendSide::forget(Stream& stream) {
  drr_.remove(stream);
  queuedPackets_ -= stream.source_.packets();
  queued_.setUsed(queuedPackets_);
  if (stream.isToCheck_) toCheck_.erase(stream);
  if (stream.isStarved_) hungry_.erase(stream);
}

}  // namespace braid
