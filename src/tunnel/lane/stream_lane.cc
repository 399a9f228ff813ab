#include "tunnel/lane/stream_lane.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid {

namespace {
/// What the driver may write ahead is what the paths carry in so long. Ours: the driver comes back sooner.
constexpr Duration kAhead = 8ms;
/// And no less than so many bytes, so that a burst is not cut where nothing is known of the paths. Ours.
constexpr size_t kLeastAhead = 32 << 10;
/// Bytes of a unit while no path is known.
constexpr size_t kFirstUnit = 1165;
/// Credit of a stream while much is held, bytes. Ours.
constexpr size_t kShortCredit = 32 << 10;
/// A stream that writes nothing for so long is no longer bulk to the path scheduler, as in the packet lane. Ours.
constexpr Duration kStreamPause = 100ms;
/// A stream that found no buffer asks again so much later. Ours.
constexpr Duration kRetry = 5ms;
/// Bytes of a packet's buffer beside its payload.
constexpr size_t kBufferExtra = PacketPool::kHeadroom + PacketPool::kTailroom;

StreamCause causeOf(uint64_t code) {
  return code < kStreamCauses ? static_cast<StreamCause>(code) : StreamCause::kReset;
}
}  // namespace

StreamLane::StreamLane(const StreamContext& context)
    : context_(context),
      desk_(context.options.desk),
      upload_(context.options.firstUpload),
      nextId_(context.isInitiator ? 0 : 1),
      memory_{FirmKeeper(context.options.memory), FirmKeeper(&context.pool.budget(PacketUse::kHeld)),
              FirmKeeper(&context.pool.budget(PacketUse::kQueued))},
      unit_(kFirstUnit),
      ahead_(kLeastAhead),
      rtt_(100ms) {}

StreamLane::~StreamLane() {
  endAll(StreamCause::kGone, false);
}

// ---- what the session tells

void StreamLane::describe(Params& own) const {
  if (!context_.options.on || !desk_) return;
  own.lanes |= Params::kStreamLane;
  own.streams = context_.options.most;
  own.streamCredit = upload_;
}

void StreamLane::setPaths(size_t unit, double rate, Duration rtt) {
  unit_ = unit;
  rtt_ = rtt;
  double ahead = std::min(rate * toSeconds(kAhead), static_cast<double>(context_.options.queuedBytes));
  ahead_ = std::max(kLeastAhead, static_cast<size_t>(ahead));
}

Stream* StreamLane::find(StreamId id) const {
  auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

Stream& StreamLane::add(StreamId id, const StreamOpening& opening, bool own, Time now) {
  auto made = std::make_unique<Stream>(*this, *this, store_, id, opening, own, now);
  Stream& stream = *streams_.emplace(id, std::move(made)).first->second;
  stream.handle_ = desk_->seat(stream);
  stream.sendLimit_ = own ? peer_.streamCredit : opening.credit;
  stream.creditLimit_ = own ? opening.credit : upload_;
  stream.window_ = stream.creditLimit_;
  own_ += own;
  ++(own ? counts_.streamsOpened : counts_.streamsAccepted);
  return stream;
}

StreamLane::Verdict StreamLane::admit(const StreamFrame& frame, Time now) {
  Stream* stream = find(frame.stream);
  if (!stream) return admitNew(frame, now);
  if (frame.end() > stream->creditLimit_ || !stream->assembly_.agrees(frame.end(), frame.fin()))
    return Verdict::kBad;
  size_t buffer = context_.pool.payload() + kBufferExtra;
  size_t growth = stream->assembly_.growth(frame.offset, frame.bytes.size(), buffer);
  return growth == 0 || makeRoom(growth) ? Verdict::kTaken : Verdict::kNoRoom;
}

// Of a stream that this side does not have. Frames of one that has ended are of no use any more.
StreamLane::Verdict StreamLane::admitNew(const StreamFrame& frame, Time now) {
  if (!frame.opening || isOwn(frame.stream)) return Verdict::kTaken;
  StreamIds::Verdict seen = ids_.look(frame.stream);
  if (seen == StreamIds::Verdict::kSeen) return Verdict::kTaken;
  if (resets_.size() >= kMostResets) return Verdict::kNoRoom;
  if (seen == StreamIds::Verdict::kStale) {
    refuse(frame.stream, StreamCause::kGone);
    return Verdict::kTaken;
  }
  if (!context_.options.on || !desk_ || streams_.size() >= context_.options.most) {
    ids_.mark(frame.stream);
    refuse(frame.stream, StreamCause::kLimit);
    return Verdict::kTaken;
  }
  if (frame.end() > upload_) return Verdict::kBad;
  if (!makeRoom(context_.pool.payload() + kBufferExtra)) return Verdict::kNoRoom;
  ids_.mark(frame.stream);
  Stream& stream = add(frame.stream, *frame.opening, false, now);
  desk_->tell(stream.handle_, StreamDesk::Word::kOpened);
  return Verdict::kTaken;
}

void StreamLane::onFrame(const StreamFrame& frame, Packet bytes, Time now) {
  Stream* stream = find(frame.stream);
  if (!stream) return;
  stream->isKnown_ = true;
  StreamAssembly& assembly = stream->assembly_;
  if (!assembly.agrees(frame.end(), frame.fin())) return;  // with what came since it was admitted
  size_t footprint = assembly.footprint(), packets = assembly.packets();
  uint64_t arrived = assembly.arrived();
  bool wasWhole = assembly.isWhole();
  assembly.add(frame.offset, std::move(bytes), frame.fin());
  countHeld(footprint, packets, assembly);
  counts_.streamReceivedBytes += assembly.arrived() - arrived;
  if (assembly.arrived() > arrived && stream->firstByte_ == kNever) stream->firstByte_ = now;
  if (assembly.arrived() > arrived || assembly.isWhole() != wasWhole)
    desk_->tell(stream->handle_, StreamDesk::Word::kReadable);
  if (assembly.isAtEnd()) look(*stream);
}

void StreamLane::onCredit(const StreamCreditFrame& frame) {
  Stream* stream = find(frame.stream);
  if (!stream) return;
  stream->isKnown_ = true;
  if (frame.limit <= stream->sendLimit_) return;
  stream->sendLimit_ = frame.limit;
  tellWritable(*stream);
}

// A reset may overtake the opening.
void StreamLane::onReset(const StreamResetFrame& frame) {
  if (!isOwn(frame.stream) && ids_.look(frame.stream) == StreamIds::Verdict::kNew) ids_.mark(frame.stream);
  if (Stream* stream = find(frame.stream)) end(*stream, causeOf(frame.code));
}

void StreamLane::update(Time now) {
  while (Stream* stream = looked_.front()) {
    looked_.popFront();
    stream->isLooked_ = false;
    settle(*stream);
  }
  if (!hungry_.empty() && retryAt_ <= now) feed(now);
  if (streams_.empty()) store_.shrink();
}

void StreamLane::endAll(StreamCause cause, bool tellPeer) {
  while (!streams_.empty()) {
    Stream& stream = *streams_.begin()->second;
    if (tellPeer) refuse(stream.id_, cause);
    end(stream, cause);
  }
}

// ---- words for the peer

bool StreamLane::pollCredit(StreamCreditFrame& out) {
  if (owing_.empty()) return false;
  Stream& stream = *owing_.popFront();
  stream.owesCredit_ = false;
  out = {stream.id_, stream.creditLimit_};
  return true;
}

bool StreamLane::pollReset(StreamResetFrame& out) {
  if (resets_.empty()) return false;
  out = resets_.front();
  resets_.popFront();
  return true;
}

void StreamLane::refuse(StreamId id, StreamCause cause) {
  resets_.pushBack({id, static_cast<uint64_t>(cause)});
  if (desk_) desk_->touch(context_.session);
}

// ---- what is held

void StreamLane::countHeld(size_t bytesBefore, size_t packetsBefore, const StreamAssembly& after) {
  heldBytes_ += after.footprint() - bytesBefore;
  heldPackets_ += after.packets() - packetsBefore;
  memory_.bytes.set(heldBytes_);
  memory_.held.set(heldPackets_);
}

// At the bound of this peer the stream goes that holds most: it is the one whose reader is slowest, and no other may wait
// for it.
bool StreamLane::makeRoom(size_t bytes) {
  while (heldBytes_ + bytes > context_.options.heldBytes) {
    Stream* most = largest();
    if (!most) return false;
    reset(*most, StreamCause::kLimit, true);
  }
  return memory_.bytes.mayKeep(bytes) && memory_.held.mayKeep(1);
}

Stream* StreamLane::largest() const {
  Stream* most = nullptr;
  for (const auto& [id, stream] : streams_) {
    size_t held = stream->assembly_.footprint();
    if (held > 0 && (!most || held > most->assembly_.footprint())) most = stream.get();
  }
  return most;
}

size_t StreamLane::firstCredit() const {
  return isShort() ? std::min(kShortCredit, context_.options.firstCredit) : context_.options.firstCredit;
}

// As TCP's receive buffer grows: who reads half of the window within two round trips may have more on its way. A limit
// that was said is never taken back.
void StreamLane::grant(Stream& stream, Time now) {
  const StreamAssembly& assembly = stream.assembly_;
  if (assembly.isWhole()) return;
  uint64_t ahead = stream.creditLimit_ - assembly.consumed();
  if (ahead > stream.window_ / 2) return;
  size_t most = std::min(context_.options.mostCredit, StreamOptions::kCreditBound);
  if (!isShort() && now - stream.granted_ < 2 * rtt_) stream.window_ = std::min(stream.window_ * 2, most);
  uint64_t limit = assembly.consumed() + (isShort() ? std::min(kShortCredit, stream.window_) : stream.window_);
  if (limit <= stream.creditLimit_) return;
  stream.granted_ = now;
  stream.creditLimit_ = limit;
  if (std::exchange(stream.owesCredit_, true)) return;
  owing_.pushBack(stream);
}

// ---- what the driver does

bool StreamLane::canOpen() const {
  return context_.options.on && desk_ && peer_.hasStreams() && own_ < peer_.streams &&
         streams_.size() < context_.options.most && resets_.size() < kMostResets &&
         nextId_ / 2 < (uint64_t{1} << 60);
}

StreamHandle StreamLane::open(const StreamEnds& ends, Time now) {
  if (!canOpen() || !memory_.queued.mayKeep(1)) return {};
  Stream& stream = add(StreamId(nextId_), {ends, firstCredit()}, true, now);
  size_t grown = stream.source_.begin(makeFor(stream));
  if (grown == 0) {
    desk_->release(stream.handle_);
    remove(stream);
    --counts_.streamsOpened;
    return {};
  }
  nextId_ += 2;
  onWritten(stream, grown, 0, 0, now);
  return stream.handle_;
}

StreamSource::Make StreamLane::makeFor(const Stream& stream) const {
  return {context_.pool, unit_, stream.id_, stream.isKnown_ ? nullptr : &stream.opening_};
}

size_t StreamLane::mayWrite(const Stream& stream) const {
  const StreamSource& source = stream.source_;
  if (source.isFinished() || source.waiting() >= ahead_ || stream.sendLimit_ <= source.end()) return 0;
  uint64_t last = std::min(stream.sendLimit_, StreamFrame::kEnd - 1);
  return static_cast<size_t>(std::min<uint64_t>(ahead_ - source.waiting(), last - source.end()));
}

size_t StreamLane::writable(Stream& stream, size_t wanted) {
  size_t may = mayWrite(stream);
  if (may > 0 && !memory_.queued.mayKeep(may / unit_ + 1)) {
    may = 0;
    starve(stream);
  }
  stream.wanted_ = may < wanted ? std::min(wanted, ahead_ / 2) : 0;
  return may;
}

// Who waits is told when half of what may wait is free, or all that the credit allows.
void StreamLane::tellWritable(Stream& stream) {
  if (stream.wanted_ == 0 || stream.isStarved_) return;
  size_t may = mayWrite(stream);
  bool isAll = may > 0 && may == stream.sendLimit_ - stream.source_.end();
  if (may < stream.wanted_ && !isAll) return;
  stream.wanted_ = 0;
  desk_->tell(stream.handle_, StreamDesk::Word::kWritable);
}

size_t StreamLane::room(Stream& stream, std::span<ByteSpan> buffers) {
  return stream.source_.room(writable(stream, 1), buffers, makeFor(stream));
}

void StreamLane::commit(Stream& stream, size_t bytes, Time now) {
  StreamSource& source = stream.source_;
  uint64_t end = source.end();
  size_t packets = source.packets();
  size_t grown = source.commit(bytes, unit_);
  onWritten(stream, grown, packets, static_cast<size_t>(source.end() - end), now);
}

size_t StreamLane::write(Stream& stream, ByteView bytes, Time now) {
  StreamSource& source = stream.source_;
  ByteView left = bytes.first(std::min(bytes.size(), writable(stream, bytes.size())));
  size_t taken = left.size();
  size_t packets = source.packets();
  size_t grown = source.write(left, makeFor(stream));
  taken -= left.size();
  if (!left.empty()) {
    stream.wanted_ = std::max<size_t>(stream.wanted_, 1);
    starve(stream);
  }
  onWritten(stream, grown, packets, taken, now);
  return taken;
}

void StreamLane::finish(Stream& stream, Time now) {
  StreamSource& source = stream.source_;
  if (source.isFinished()) return;
  size_t packets = source.packets();
  size_t grown = source.finish(makeFor(stream));
  stream.wanted_ = 0;
  stream.finishes_ = true;
  if (!source.isFinished()) return starve(stream);
  onWritten(stream, grown, packets, 0, now);
}

// What was written ends a burst as far as is known: the next call of the driver may not come soon.
void StreamLane::onWritten(Stream& stream, size_t grown, size_t packets, size_t bytes, Time now) {
  if (grown == 0) return;
  Duration quiet = stream.lastWrite_ == Time::min() ? Duration::max() : now - stream.lastWrite_;
  stream.lastWrite_ = now;
  bool waits = stream.waiting() > 0;
  if (!waits && quiet >= kStreamPause) stream.patience.restart();
  PacketHint hint;
  hint.push = true;
  stream.burst.onPacket(grown, true, hint, quiet, waits);
  queuedPackets_ += stream.source_.packets() - packets;
  memory_.queued.set(queuedPackets_);
  counts_.streamSentBytes += bytes;
  context_.round.onData(stream, grown);
  desk_->touch(context_.session);
}

void StreamLane::consume(Stream& stream, size_t bytes, Time now) {
  StreamAssembly& assembly = stream.assembly_;
  size_t footprint = assembly.footprint(), packets = assembly.packets();
  assembly.consume(bytes);
  countHeld(footprint, packets, assembly);
  grant(stream, now);
  if (stream.owesCredit_) desk_->touch(context_.session);
  if (assembly.isAtEnd()) settle(stream);
}

void StreamLane::reset(Stream& stream, StreamCause cause) {
  reset(stream, cause, false);
}

// By this side. `tellDriver`: it does not know.
void StreamLane::reset(Stream& stream, StreamCause cause, bool tellDriver) {
  refuse(stream.id_, cause);
  if (!tellDriver) desk_->release(stream.handle_);
  end(stream, cause);
}

void StreamLane::end(Stream& stream, StreamCause cause) {
  counts_.countReset(cause);
  desk_->end(stream.handle_, cause);
  remove(stream);
}

// ---- buffers are short

void StreamLane::starve(Stream& stream) {
  if (std::exchange(stream.isStarved_, true)) return;
  if (hungry_.empty()) retryAt_ = Time::min();
  hungry_.pushBack(stream);
  desk_->touch(context_.session);
}

void StreamLane::feed(Time now) {
  retryAt_ = now + kRetry;
  while (Stream* stream = hungry_.front()) {
    if (!memory_.queued.mayKeep(ahead_ / unit_ + 1)) return;
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

const Packet* StreamLane::prepare(Flow& flow, Time) {
  auto& stream = static_cast<Stream&>(flow);
  size_t grown = 0;
  size_t packets = stream.source_.packets();
  const Packet* unit = stream.source_.prepare(stream.unit, makeFor(stream), grown);
  onCut(stream, packets, grown);
  return unit;
}

bool StreamLane::cut(Flow& flow, size_t size) {
  auto& stream = static_cast<Stream&>(flow);
  StreamSource::Make make = makeFor(stream);
  make.unit = size;
  size_t grown = 0;
  size_t packets = stream.source_.packets();
  bool isCut = stream.source_.cut(stream.unit, make, grown);
  onCut(stream, packets, grown);
  return isCut;
}

void StreamLane::onCut(Stream& stream, size_t packetsBefore, size_t grown) {
  if (grown == 0) return;
  queuedPackets_ += stream.source_.packets() - packetsBefore;
  memory_.queued.set(queuedPackets_);
  context_.round.onData(stream, grown);
}

Packet StreamLane::handOut(Flow& flow) {
  auto& stream = static_cast<Stream&>(flow);
  Packet unit = stream.source_.handOut();
  memory_.queued.set(--queuedPackets_);
  if (stream.source_.packets() == 0) stream.patience.onDrained();
  tellWritable(stream);
  return unit;
}

// All that was sent has arrived, or the stream is being removed.
void StreamLane::onSettled(Flow& flow) {
  auto& stream = static_cast<Stream&>(flow);
  stream.isKnown_ = true;
  look(stream);
}

// ---- ends

void StreamLane::look(Stream& stream) {
  if (std::exchange(stream.isLooked_, true)) return;
  looked_.pushBack(stream);
}

void StreamLane::settle(Stream& stream) {
  if (!stream.source_.hasLeft() || stream.sent.unacked() > 0 || !stream.assembly_.isAtEnd()) return;
  ++counts_.streamsDone;
  desk_->end(stream.handle_, std::nullopt);
  remove(stream);
}

void StreamLane::remove(Stream& stream) {
  context_.ledger.takeBack(stream, [](Packet) {});
  context_.round.leave(stream);
  queuedPackets_ -= stream.source_.packets();
  memory_.queued.set(queuedPackets_);
  size_t footprint = stream.assembly_.footprint(), packets = stream.assembly_.packets();
  stream.assembly_.clear();
  countHeld(footprint, packets, stream.assembly_);
  if (stream.isLooked_) looked_.erase(stream);
  if (stream.owesCredit_) owing_.erase(stream);
  if (stream.isStarved_) hungry_.erase(stream);
  own_ -= stream.isOwn_;
  streams_.erase(stream.id_);
}

// ---- for the operator

std::vector<StreamStatus> StreamLane::list(size_t most, Time now) const {
  std::vector<StreamStatus> out;
  for (const auto& [id, stream] : streams_) {
    if (out.size() >= most) break;
    const StreamSource& source = stream->source_;
    const StreamAssembly& assembly = stream->assembly_;
    StreamStatus& s = out.emplace_back();
    const FlowKey& key = stream->key();
    s.name = (stream->isOwn_ ? key : key.reversed()).toString();
    bool sent = source.isFinished(), received = assembly.isWhole();
    s.state = sent && received ? "closing" : sent ? "sent" : received ? "received" : "open";
    s.sentBytes = source.end();
    s.receivedBytes = assembly.arrived();
    s.queuedBytes = source.waiting();
    s.unacked = stream->sent.unacked();
    s.heldBytes = assembly.footprint();
    s.age = now - stream->begun_;
    if (stream->firstByte_ != kNever) s.firstByte = stream->firstByte_ - stream->begun_;
  }
  return out;
}

}  // namespace braid
