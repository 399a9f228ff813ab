#include "tunnel/stream/session_streams.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
/// Bytes of credit of a stream while much is held (ReceiveMemory::isShort()).
constexpr size_t kShortCredit = 32 << 10;
/// Round-trip time that is assumed while no path is known.
constexpr Duration kFirstRtt = 100ms;
/// Bytes of a packet's buffer in addition to its payload.
constexpr size_t kBufferExtra = PacketPool::kHeadroom + PacketPool::kTailroom;

/// One of kSpare streams is reserved for connections that are already on their way when new ones
/// begin to stay packets.
constexpr size_t kSpare = 16;
/// One of kSpareOpenings tokens for openings is reserved in the same way. Chosen: at some thousand
/// connections a second a hundred arrive before the rules that intercept new connections have
/// changed, and a connection that finds no token waits for its turn.
constexpr uint32_t kSpareOpenings = 4;
/// One of kLag streams is reserved for what one side does before the other hears of it: streams
/// that it opens, and streams that have ended there and not yet here. At least kLeastLag are
/// reserved, but at most half of all. Chosen: thousands of streams a second begin and end, and a
/// machine that is busy with them lags by tens of milliseconds.
constexpr size_t kLag = 4, kLeastLag = 256;

StreamCause causeOf(uint64_t code) {
  return code < kStreamCauses ? static_cast<StreamCause>(code) : StreamCause::kReset;
}
}  // namespace

SessionStreams::SessionStreams(const StreamContext& context, DrrScheduler& drr)
    : context_(context),
      registry_(context.registry),
      peersFirstCredit_(context.options.firstUpload),
      nextId_(context.isInitiator ? 0 : 1),
      receiveMemory_(context.options, context.pool, context.memory, [this] { freeMemory(); }),
      sendSide_(context.options, context.pool, drr, registry_, context.session),
      rtt_(kFirstRtt) {}

SessionStreams::~SessionStreams() {
  endAll(StreamCause::kGone, false);
}

// ---- called by the session

void SessionStreams::writeParams(Params& own) const {
  if (!isOn()) return;
  own.lanes |= Params::kStreamLane | Params::kStreamAnswers;
  own.streams = announcedMost();
  own.streamCredit = peersFirstCredit_;
}

Stream* SessionStreams::find(StreamId id) const {
  auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

Stream& SessionStreams::add(StreamId id, const StreamOpening& opening, bool own, Time now) {
  auto made = std::make_unique<Stream>(*this, sendSide_, store_, id, opening, own, now);
  Stream& stream = *streams_.emplace(id, std::move(made)).first->second;
  stream.handle_ = registry_->add(stream);
  stream.sendLimit_ = own ? peer_.streamCredit : opening.credit;
  stream.creditLimit_ = own ? opening.credit : peersFirstCredit_;
  stream.window_ = stream.creditLimit_;
  ++(own ? counts_.streamsOpened : counts_.streamsAccepted);
  return stream;
}

SessionStreams::Verdict SessionStreams::admit(const StreamFrame& frame, Time now) {
  Stream* stream = find(frame.stream);
  if (!stream) {
    Verdict verdict = admitNew(frame, now);
    stream = find(frame.stream);
    if (!stream) return verdict;
  }
  const Reassembler& assembly = stream->assembly_;
  if (frame.end() > stream->creditLimit_ || !assembly.agrees(frame.end(), frame.fin()))
    return Verdict::kBad;
  size_t growth =
      assembly.growth(frame.offset, frame.bytes.size(), context_.pool.payload() + kBufferExtra);
  if (growth == 0) return Verdict::kTaken;
  bool isNext = frame.offset <= assembly.arrived();
  if (assembly.isCrowded(frame.offset)) return Verdict::kNoRoom;
  return (isNext ? makeRoom(growth, now) : receiveMemory_.takesEarly(growth)) ? Verdict::kTaken
                                                                              : Verdict::kNoRoom;
}

// For a frame of a stream that this side does not have, and that the frame may open. Frames of a
// stream that has ended are of no use any more.
SessionStreams::Verdict SessionStreams::admitNew(const StreamFrame& frame, Time now) {
  if (!frame.opening || isOwn(frame.stream)) return Verdict::kTaken;
  StreamIdFilter::Verdict seen = ids_.check(frame.stream);
  if (seen == StreamIdFilter::Verdict::kSeen) return Verdict::kTaken;
  if (resets_.size() >= kMostResets) return Verdict::kNoRoom;
  StreamRateLimits& rateLimits = context_.rateLimits;
  const uint32_t rate = context_.options.newPerSecond;
  const bool isStale = seen == StreamIdFilter::Verdict::kStale;
  const bool hasRoom = isOn() && streams_.size() < context_.options.most;
  if (isStale || !hasRoom || !rateLimits.accepted.take(StreamRateLimits::ofPeer(rate), now)) {
    ++counts_.streamsTurnedAway;
    if (!rateLimits.refused.take(StreamRateLimits::refusals(rate), now)) return Verdict::kNoRoom;
    if (!isStale) ids_.record(frame.stream);
    queueReset(frame.stream, isStale ? StreamCause::kGone : StreamCause::kLimit);
    return Verdict::kTaken;
  }
  ids_.record(frame.stream);
  Stream& stream = add(frame.stream, *frame.opening, false, now);
  context_.trace.note(traceOf(stream, now));
  registry_->announce(stream.handle_, context_.session);
  return Verdict::kTaken;
}

void SessionStreams::onFrame(const StreamFrame& frame, Packet bytes, Time now) {
  Stream* stream = find(frame.stream);
  if (!stream) return;
  stream->isKnown_ = true;
  Reassembler& assembly = stream->assembly_;
  if (!assembly.agrees(frame.end(), frame.fin())) return;  // other frames may have come since
  noteAnswer(*stream);
  uint64_t arrived = assembly.arrived();
  bool wasWhole = assembly.isWhole();
  assembly.add(frame.offset, std::move(bytes), frame.fin());
  receiveMemory_.onChange(*stream);
  counts_.streamReceivedBytes += assembly.arrived() - arrived;
  if (assembly.arrived() > arrived) {
    if (stream->firstByte_ == kNever) stream->firstByte_ = now;
    stream->lastByte_ = now;
  }
  if (assembly.arrived() > arrived || assembly.isWhole() != wasWhole)
    registry_->tell(stream->handle_, &StreamEvent::readable);
  if (assembly.isAtEnd()) sendSide_.checkLater(*stream);
}

void SessionStreams::onCredit(const StreamCreditFrame& frame) {
  Stream* stream = find(frame.stream);
  if (!stream) return;
  stream->isKnown_ = true;
  noteAnswer(*stream);
  if (frame.limit <= stream->sendLimit_) return;
  stream->sendLimit_ = frame.limit;
  sendSide_.tellWritable(*stream);
}

// A reset may overtake the opening.
void SessionStreams::onReset(const StreamResetFrame& frame, Time now) {
  if (!isOwn(frame.stream) && ids_.check(frame.stream) == StreamIdFilter::Verdict::kNew)
    ids_.record(frame.stream);
  Stream* stream = find(frame.stream);
  if (!stream) return;
  StreamCause cause = causeOf(frame.code);
  wasRefused_ |= stream->isOwn_ && cause == StreamCause::kLimit;
  end(*stream, cause, now);
}

void SessionStreams::update(Time now) {
  updated_ = now;
  if (std::exchange(wasRefused_, false)) pauseIntercepting(now + kPauseAfterRefusal);
  isPaused_ = now < pausedUntil_;
  while (Stream* stream = sendSide_.takeToCheck()) endIfDone(*stream, now);
  sendSide_.feed(now);
}

void SessionStreams::endAll(StreamCause cause, bool tellPeer) {
  while (!streams_.empty()) {
    Stream& stream = *streams_.begin()->second;
    if (tellPeer) queueReset(stream.id_, cause);
    end(stream, cause, updated_);
  }
}

// ---- frames for the peer

bool SessionStreams::pollCredit(StreamCreditFrame& out) {
  if (creditsToSend_.empty()) return false;
  Stream& stream = *creditsToSend_.popFront();
  stream.owesCredit_ = false;
  out = {stream.id_, stream.creditLimit_};
  return true;
}

bool SessionStreams::pollReset(StreamResetFrame& out) {
  if (resets_.empty()) return false;
  out = resets_.front();
  resets_.popFront();
  return true;
}

void SessionStreams::queueReset(StreamId id, StreamCause cause) {
  resets_.pushBack({id, static_cast<uint64_t>(cause)});
  if (registry_) registry_->touch(context_.session);
}

// ---- receive memory

// When memory is short, the stream with the most unread bytes is reset, so that no other stream
// waits for its reader. It may be the stream that needs the room. False when no stream has unread
// bytes.
bool SessionStreams::makeRoom(size_t bytes, Time now) {
  while (!receiveMemory_.takesNext(bytes)) {
    Stream* most = receiveMemory_.mostUnread();
    if (!most) return false;
    reset(*most, StreamCause::kLimit, true, now);
  }
  return true;
}

// Another session has no memory left, and this one holds more than twice as much as that one would
// hold.
void SessionStreams::freeMemory() {
  if (Stream* most = receiveMemory_.mostUnread()) reset(*most, StreamCause::kLimit, true, updated_);
}

size_t SessionStreams::firstCredit() const {
  return receiveMemory_.isShort() ? std::min(kShortCredit, context_.options.firstCredit)
                                  : context_.options.firstCredit;
}

// Works like the growth of TCP's receive buffer: the window doubles if the reader takes half of it
// within two round trips. A limit that was announced is never lowered.
void SessionStreams::raiseCredit(Stream& stream, Time now) {
  const Reassembler& assembly = stream.assembly_;
  if (assembly.isWhole()) return;
  uint64_t ahead = stream.creditLimit_ - assembly.consumed();
  if (ahead > stream.window_ / 2) return;
  size_t most = std::min(context_.options.mostCredit, StreamOptions::kCreditBound);
  if (!receiveMemory_.isShort() && now - stream.granted_ < 2 * rtt_)
    stream.window_ = std::min(stream.window_ * 2, most);
  uint64_t limit =
      assembly.consumed() +
      (receiveMemory_.isShort() ? std::min(kShortCredit, stream.window_) : stream.window_);
  if (limit <= stream.creditLimit_) return;
  stream.granted_ = now;
  stream.creditLimit_ = limit;
  announceCredit(stream);
}

void SessionStreams::announceCredit(Stream& stream) {
  if (!std::exchange(stream.owesCredit_, true)) creditsToSend_.pushBack(stream);
}

// ---- answers

void SessionStreams::answer(Stream& stream) {
  if (stream.isOwn_ || !std::exchange(stream.isUnanswered_, false)) return;
  announceCredit(stream);
  registry_->touch(context_.session);
}

// The peer says something about the stream that it says only after the destination has accepted.
void SessionStreams::noteAnswer(Stream& stream) {
  if (stream.isOwn_ && std::exchange(stream.isUnanswered_, false))
    registry_->tell(stream.handle_, &StreamEvent::answered);
}

// ---- called by the driver

void SessionStreams::pauseIntercepting(Time until) {
  pausedUntil_ = std::max(pausedUntil_, until);
  isPaused_ = true;
}

size_t SessionStreams::announcedMost() const {
  const size_t most = context_.options.most;
  return most - std::max(most / kLag, std::min(most / 2, kLeastLag));
}

size_t SessionStreams::most() const {
  return std::min<uint64_t>(context_.options.most, peer_.streams);
}

bool SessionStreams::canOpen() const {
  return isOn() && peer_.hasStreams() && streams_.size() < most() && resets_.size() < kMostResets &&
         nextId_ / 2 < (uint64_t{1} << 60);
}

bool SessionStreams::mayIntercept() const {
  return !isPaused_ && canOpen() && streams_.size() + most() / kSpare < most();
}

StreamHandle SessionStreams::open(const StreamEnds& ends, Time now, bool asks) {
  const RateLimit ration = StreamRateLimits::own(context_.options.newPerSecond);
  TokenBucket& opened = context_.rateLimits.opened;
  if (!canOpen() || !opened.take(ration, now)) return {};
  // The tokens left are for connections on their way. Openings stop until half of the tokens are
  // there again; otherwise new connections would change between streams and packets all the time.
  if (now < opened.availableAt(ration, ration.burst / kSpareOpenings))
    pauseIntercepting(opened.availableAt(ration, ration.burst / 2));
  Stream& stream = add(StreamId(nextId_), {ends, firstCredit(), asks}, true, now);
  if (!sendSide_.begin(stream, now)) {
    registry_->release(stream.handle_);
    remove(stream);
    --counts_.streamsOpened;
    return {};
  }
  nextId_ += 2;
  context_.trace.note(traceOf(stream, now));
  return stream.handle_;
}

void SessionStreams::consume(Stream& stream, size_t bytes, Time now) {
  Reassembler& assembly = stream.assembly_;
  assembly.consume(bytes);
  receiveMemory_.onChange(stream);
  raiseCredit(stream, now);
  if (stream.owesCredit_) registry_->touch(context_.session);
  if (assembly.isAtEnd()) endIfDone(stream, now);
}

void SessionStreams::reset(Stream& stream, StreamCause cause, Time now) {
  reset(stream, cause, false, now);
}

// This side resets the stream. `tellDriver`: the driver does not know of it.
void SessionStreams::reset(Stream& stream, StreamCause cause, bool tellDriver, Time now) {
  queueReset(stream.id_, cause);
  if (!tellDriver) registry_->release(stream.handle_);
  end(stream, cause, now);
}

// nullopt: both directions have come to their ends.
void SessionStreams::end(Stream& stream, std::optional<StreamCause> cause, Time now) {
  if (cause) {
    counts_.countReset(*cause);
  } else {
    ++counts_.streamsDone;
  }
  traceEnd(stream, cause, now);
  registry_->end(stream.handle_, cause);
  remove(stream);
}

// ---- ends

void SessionStreams::endIfDone(Stream& stream, Time now) {
  if (!stream.source_.hasLeft() || stream.sent.unacked() > 0 || !stream.assembly_.isAtEnd()) return;
  end(stream, std::nullopt, now);
}

void SessionStreams::remove(Stream& stream) {
  context_.dataTracker.takeBack(stream, [](Packet) {});
  sendSide_.forget(stream);
  stream.assembly_.clear();
  receiveMemory_.onChange(stream);
  if (stream.owesCredit_) creditsToSend_.erase(stream);
  streams_.erase(stream.id_);
  if (streams_.empty()) store_.shrink();
}

// ---- for the operator

StreamTrace SessionStreams::traceOf(const Stream& stream, Time now) {
  StreamTrace out{.time = now, .stream = stream.id_, .isOwn = stream.isOwn_, .ends = stream.ends()};
  out.begun = stream.begun_;
  return out;
}

void SessionStreams::traceEnd(const Stream& stream, std::optional<StreamCause> cause,
                              Time now) const {
  StreamTrace out = traceOf(stream, now);
  out.hasEnded = true;
  out.sentBytes = stream.source_.end();
  out.receivedBytes = stream.assembly_.arrived();
  out.firstByte = stream.firstByte_;
  out.cause = cause;
  context_.trace.note(out);
}

StreamCounts SessionStreams::counts() const {
  StreamCounts counts = counts_;
  counts.streamSentBytes = sendSide_.sentBytes();
  return counts;
}

std::vector<StreamStatus> SessionStreams::list(size_t most, Time now) const {
  std::vector<StreamStatus> out;
  for (const auto& [id, stream] : streams_) {
    if (out.size() >= most) break;
    const SendBuffer& source = stream->source_;
    const Reassembler& assembly = stream->assembly_;
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
    if (s.queuedBytes + s.unacked == 0)
      s.idle = now - std::max(stream->lastByte_, stream->lastWrite_);
  }
  return out;
}

}  // namespace braid
