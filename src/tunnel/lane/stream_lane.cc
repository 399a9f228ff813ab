#include "tunnel/lane/stream_lane.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
/// Credit of a stream while much is held, bytes. Ours.
constexpr size_t kShortCredit = 32 << 10;
/// Round trip that is taken for granted while no path is known. Ours.
constexpr Duration kFirstRtt = 100ms;
/// Bytes of a packet's buffer beside its payload.
constexpr size_t kBufferExtra = PacketPool::kHeadroom + PacketPool::kTailroom;

/// One stream in so many is for connections that are on their way when no more are to come. Ours.
constexpr size_t kSpare = 16;
/// And one opening in so many of those that there may be at once. Ours: at some thousand connections a second a hundred
/// come before the rules have changed, and who finds nothing left waits for its turn.
constexpr uint32_t kSpareOpenings = 4;
/// And one in so many is for what one side does before the other hears of it: streams that it opens, and those that have
/// ended there and not yet here. Of small bounds more, half of them at most. Ours: thousands of streams a second begin and
/// end, and a machine that is busy with them lags by tens of milliseconds.
constexpr size_t kLag = 4, kLeastLag = 256;

StreamCause causeOf(uint64_t code) {
  return code < kStreamCauses ? static_cast<StreamCause>(code) : StreamCause::kReset;
}
}  // namespace

StreamLane::StreamLane(const StreamContext& context)
    : context_(context),
      desk_(context.options.desk),
      upload_(context.options.firstUpload),
      nextId_(context.isInitiator ? 0 : 1),
      holdings_(context.options, context.pool, [this] { giveWay(); }),
      sending_(context.options, context.pool, context.round, desk_, context.session),
      rtt_(kFirstRtt) {}

StreamLane::~StreamLane() {
  endAll(StreamCause::kGone, false);
}

// ---- what the session tells

void StreamLane::describe(Params& own) const {
  if (!isOn()) return;
  own.lanes |= Params::kStreamLane;
  own.streams = announced();
  own.streamCredit = upload_;
}

Stream* StreamLane::find(StreamId id) const {
  auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

Stream& StreamLane::add(StreamId id, const StreamOpening& opening, bool own, Time now) {
  auto made = std::make_unique<Stream>(*this, sending_, store_, id, opening, own, now);
  Stream& stream = *streams_.emplace(id, std::move(made)).first->second;
  stream.handle_ = desk_->seat(stream);
  stream.sendLimit_ = own ? peer_.streamCredit : opening.credit;
  stream.creditLimit_ = own ? opening.credit : upload_;
  stream.window_ = stream.creditLimit_;
  ++(own ? counts_.streamsOpened : counts_.streamsAccepted);
  return stream;
}

StreamLane::Verdict StreamLane::admit(const StreamFrame& frame, Time now) {
  Stream* stream = find(frame.stream);
  if (!stream) {
    Verdict verdict = admitNew(frame, now);
    stream = find(frame.stream);
    if (!stream) return verdict;
  }
  const StreamAssembly& assembly = stream->assembly_;
  if (frame.end() > stream->creditLimit_ || !assembly.agrees(frame.end(), frame.fin())) return Verdict::kBad;
  size_t growth = assembly.growth(frame.offset, frame.bytes.size(), context_.pool.payload() + kBufferExtra);
  if (growth == 0) return Verdict::kTaken;
  bool isNext = frame.offset <= assembly.arrived();
  if (assembly.isCrowded(frame.offset)) return Verdict::kNoRoom;
  return (isNext ? makeRoom(growth, now) : holdings_.takesEarly(growth)) ? Verdict::kTaken : Verdict::kNoRoom;
}

// Of a stream that this side does not have, and which may begin. Frames of one that has ended are of no use any more.
StreamLane::Verdict StreamLane::admitNew(const StreamFrame& frame, Time now) {
  if (!frame.opening || isOwn(frame.stream)) return Verdict::kTaken;
  StreamIds::Verdict seen = ids_.look(frame.stream);
  if (seen == StreamIds::Verdict::kSeen) return Verdict::kTaken;
  if (resets_.size() >= kMostResets) return Verdict::kNoRoom;
  StreamRations& rations = context_.rations;
  const uint32_t rate = context_.options.newPerSecond;
  const bool isStale = seen == StreamIds::Verdict::kStale;
  const bool hasRoom = isOn() && streams_.size() < context_.options.most;
  if (isStale || !hasRoom || !rations.taken.take(StreamRations::ofPeer(rate), now)) {
    ++counts_.streamsTurnedAway;
    if (!rations.refused.take(StreamRations::refusals(rate), now)) return Verdict::kNoRoom;
    if (!isStale) ids_.mark(frame.stream);
    refuse(frame.stream, isStale ? StreamCause::kGone : StreamCause::kLimit);
    return Verdict::kTaken;
  }
  ids_.mark(frame.stream);
  Stream& stream = add(frame.stream, *frame.opening, false, now);
  context_.trace.note(lineOf(stream, now));
  desk_->announce(stream.handle_, context_.session);
  return Verdict::kTaken;
}

void StreamLane::onFrame(const StreamFrame& frame, Packet bytes, Time now) {
  Stream* stream = find(frame.stream);
  if (!stream) return;
  stream->isKnown_ = true;
  StreamAssembly& assembly = stream->assembly_;
  if (!assembly.agrees(frame.end(), frame.fin())) return;  // with what came since it was admitted
  uint64_t arrived = assembly.arrived();
  bool wasWhole = assembly.isWhole();
  assembly.add(frame.offset, std::move(bytes), frame.fin());
  holdings_.onChange(*stream);
  counts_.streamReceivedBytes += assembly.arrived() - arrived;
  if (assembly.arrived() > arrived && stream->firstByte_ == kNever) stream->firstByte_ = now;
  if (assembly.arrived() > arrived || assembly.isWhole() != wasWhole)
    desk_->tell(stream->handle_, StreamDesk::Word::kReadable);
  if (assembly.isAtEnd()) sending_.look(*stream);
}

void StreamLane::onCredit(const StreamCreditFrame& frame) {
  Stream* stream = find(frame.stream);
  if (!stream) return;
  stream->isKnown_ = true;
  if (frame.limit <= stream->sendLimit_) return;
  stream->sendLimit_ = frame.limit;
  sending_.tellWritable(*stream);
}

// A reset may overtake the opening.
void StreamLane::onReset(const StreamResetFrame& frame, Time now) {
  if (!isOwn(frame.stream) && ids_.look(frame.stream) == StreamIds::Verdict::kNew) ids_.mark(frame.stream);
  Stream* stream = find(frame.stream);
  if (!stream) return;
  StreamCause cause = causeOf(frame.code);
  wasTurnedAway_ |= stream->isOwn_ && cause == StreamCause::kLimit;
  end(*stream, cause, now);
}

void StreamLane::update(Time now) {
  updated_ = now;
  if (std::exchange(wasTurnedAway_, false)) rest(now + kTurnedAway);
  isResting_ = now < restsUntil_;
  while (Stream* stream = sending_.takeLooked()) settle(*stream, now);
  sending_.feed(now);
}

void StreamLane::endAll(StreamCause cause, bool tellPeer) {
  while (!streams_.empty()) {
    Stream& stream = *streams_.begin()->second;
    if (tellPeer) refuse(stream.id_, cause);
    end(stream, cause, updated_);
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

// At a bound the stream goes whose reader is behind most: no other may wait for it. Perhaps the very one that the room is
// for. False: readers are not to blame.
bool StreamLane::makeRoom(size_t bytes, Time now) {
  while (!holdings_.takesNext(bytes)) {
    Stream* most = holdings_.laziest();
    if (!most) return false;
    reset(*most, StreamCause::kLimit, true, now);
  }
  return true;
}

// Another session finds no memory, and this one holds more than twice as much as that one would have.
void StreamLane::giveWay() {
  if (Stream* most = holdings_.laziest()) reset(*most, StreamCause::kLimit, true, updated_);
}

size_t StreamLane::firstCredit() const {
  return holdings_.isShort() ? std::min(kShortCredit, context_.options.firstCredit)
                             : context_.options.firstCredit;
}

// As TCP's receive buffer grows: who reads half of the window within two round trips may have more on its way. A limit
// that was said is never taken back.
void StreamLane::grant(Stream& stream, Time now) {
  const StreamAssembly& assembly = stream.assembly_;
  if (assembly.isWhole()) return;
  uint64_t ahead = stream.creditLimit_ - assembly.consumed();
  if (ahead > stream.window_ / 2) return;
  size_t most = std::min(context_.options.mostCredit, StreamOptions::kCreditBound);
  if (!holdings_.isShort() && now - stream.granted_ < 2 * rtt_)
    stream.window_ = std::min(stream.window_ * 2, most);
  uint64_t limit =
      assembly.consumed() + (holdings_.isShort() ? std::min(kShortCredit, stream.window_) : stream.window_);
  if (limit <= stream.creditLimit_) return;
  stream.granted_ = now;
  stream.creditLimit_ = limit;
  if (std::exchange(stream.owesCredit_, true)) return;
  owing_.pushBack(stream);
}

// ---- what the driver does

void StreamLane::rest(Time until) {
  restsUntil_ = std::max(restsUntil_, until);
  isResting_ = true;
}

size_t StreamLane::announced() const {
  const size_t most = context_.options.most;
  return most - std::max(most / kLag, std::min(most / 2, kLeastLag));
}

size_t StreamLane::most() const {
  return std::min<uint64_t>(context_.options.most, peer_.streams);
}

bool StreamLane::canOpen() const {
  return isOn() && peer_.hasStreams() && streams_.size() < most() && resets_.size() < kMostResets &&
         nextId_ / 2 < (uint64_t{1} << 60);
}

bool StreamLane::mayTakeOver() const {
  return !isResting_ && canOpen() && streams_.size() + most() / kSpare < most();
}

StreamHandle StreamLane::open(const StreamEnds& ends, Time now) {
  const Allowance ration = StreamRations::own(context_.options.newPerSecond);
  Ration& opened = context_.rations.opened;
  if (!canOpen() || !opened.take(ration, now)) return {};
  // What is left then is for those on their way; until half is there again, or connections would change the lane all
  // the time.
  if (now < opened.availableAt(ration, ration.burst / kSpareOpenings))
    rest(opened.availableAt(ration, ration.burst / 2));
  Stream& stream = add(StreamId(nextId_), {ends, firstCredit()}, true, now);
  if (!sending_.begin(stream, now)) {
    desk_->release(stream.handle_);
    remove(stream);
    --counts_.streamsOpened;
    return {};
  }
  nextId_ += 2;
  context_.trace.note(lineOf(stream, now));
  return stream.handle_;
}

void StreamLane::consume(Stream& stream, size_t bytes, Time now) {
  StreamAssembly& assembly = stream.assembly_;
  assembly.consume(bytes);
  holdings_.onChange(stream);
  grant(stream, now);
  if (stream.owesCredit_) desk_->touch(context_.session);
  if (assembly.isAtEnd()) settle(stream, now);
}

void StreamLane::reset(Stream& stream, StreamCause cause, Time now) {
  reset(stream, cause, false, now);
}

// By this side. `tellDriver`: it does not know.
void StreamLane::reset(Stream& stream, StreamCause cause, bool tellDriver, Time now) {
  refuse(stream.id_, cause);
  if (!tellDriver) desk_->release(stream.handle_);
  end(stream, cause, now);
}

// Without a cause: both ways have come to their ends.
void StreamLane::end(Stream& stream, std::optional<StreamCause> cause, Time now) {
  if (cause) {
    counts_.countReset(*cause);
  } else {
    ++counts_.streamsDone;
  }
  traceEnd(stream, cause, now);
  desk_->end(stream.handle_, cause);
  remove(stream);
}

// ---- ends

void StreamLane::settle(Stream& stream, Time now) {
  if (!stream.source_.hasLeft() || stream.sent.unacked() > 0 || !stream.assembly_.isAtEnd()) return;
  end(stream, std::nullopt, now);
}

void StreamLane::remove(Stream& stream) {
  context_.ledger.takeBack(stream, [](Packet) {});
  sending_.forget(stream);
  stream.assembly_.clear();
  holdings_.onChange(stream);
  if (stream.owesCredit_) owing_.erase(stream);
  streams_.erase(stream.id_);
  if (streams_.empty()) store_.shrink();
}

// ---- for the operator

StreamTrace StreamLane::lineOf(const Stream& stream, Time now) {
  StreamTrace out{.time = now, .stream = stream.id_, .isOwn = stream.isOwn_, .ends = stream.ends()};
  out.begun = stream.begun_;
  return out;
}

void StreamLane::traceEnd(const Stream& stream, std::optional<StreamCause> cause, Time now) const {
  StreamTrace out = lineOf(stream, now);
  out.hasEnded = true;
  out.sentBytes = stream.source_.end();
  out.receivedBytes = stream.assembly_.arrived();
  out.firstByte = stream.firstByte_;
  out.cause = cause;
  context_.trace.note(out);
}

StreamCounts StreamLane::counts() const {
  StreamCounts counts = counts_;
  counts.streamSentBytes = sending_.sentBytes();
  return counts;
}

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
