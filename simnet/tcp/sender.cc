#include "simnet/tcp/sender.h"

#include <algorithm>
#include <utility>

namespace braid::sim::tcp {

namespace {
/// More losses of SYN or SYN-ACK leave an initial window of one segment (RFC 6928 section 2).
constexpr uint32_t kSynLosses = 1;
}  // namespace

Sender::Sender(Timeline& timeline, SegmentOutlet& outlet, const Options& options)
    : timeline_(timeline),
      outlet_(outlet),
      options_(options),
      rto_(options),
      counting_(options.fack),
      alarm_(timeline, [this] { onAlarm(); }) {}

void Sender::open(const Agreement& agreement) {
  agreed_ = agreement;
  options_.rack &= agreed_.sack;
  options_.tlp &= agreed_.sack;
  options_.prr &= agreed_.sack;
  mss_ = agreed_.mss;
  congestion_ = makeCongestion(options_.control, mss_);
  bool lossy = agreed_.synTimeouts > kSynLosses;
  cwnd_ = static_cast<double>(lossy ? 1 : options_.initialWindow) * mss_;
  peerEnd_ = agreed_.peerWindow;
  if (agreed_.rtt) rto_.onSample(*agreed_.rtt, now());
  if (agreed_.synTimeouts > 0) rto_.onSynTimeout();
  open_ = true;
  sendWhatMay();
}

void Sender::write(uint64_t bytes) {
  end_ += bytes;
  if (open_) sendWhatMay();
}

void Sender::stop() {
  open_ = false;
  alarm_.set(kNever);
}

void Sender::reduceMss(uint32_t mss) {
  if (!open_ || mss >= mss_) return;
  mss_ = mss;
  board_.cut(mss);
  counting_.allLost(board_);
  sendWhatMay();
}

uint64_t Sender::pipe() const {
  uint64_t pipe = board_.pipe();
  return pipe - std::min<uint64_t>(pipe, uint64_t{dupAcks_} * mss_);
}

// ---- what an ACK says

void Sender::onAck(const Ack& ack) {
  if (!open_ || ack.upTo < una_ || ack.upTo > next_) return;
  bool windowMoved = ack.upTo + ack.window > peerEnd_;
  peerEnd_ = std::max(peerEnd_, ack.upTo + ack.window);
  stats_.dsacks += ack.dsack.has_value();

  Progress progress = take(ack);
  bool recovered = state_ != State::kOpen && una_ >= recoverAt_;
  if (recovered) endRecovery();
  if (ack.dsack) rack_.onDsack(una_, next_);
  std::optional<uint64_t> dsackEnd = ack.dsack ? std::optional(ack.dsack->end) : std::nullopt;
  bool probeRepaired = probe_.onAck(ack.upTo, progress.acked > 0, dsackEnd, ack.sackCount > 0);

  if (!agreed_.sack) countDuplicates(ack, progress, windowMoved);
  if (ack.missingUpTo) loseUpTo(*ack.missingUpTo);
  if (findLosses() && state_ == State::kOpen)
    beginFastRecovery();
  else if (probeRepaired && state_ == State::kOpen)
    cutForLoss(), cwnd_ = ssthresh_, markedUpTo_ = next_;

  bool cut = (ack.echo && agreed_.ecn) || ack.corrected ? cutForMark() : false;
  if (progress.acked > 0 && !recovered && !cut) grow(ack, progress);
  if (state_ == State::kFastRecovery && options_.prr && (progress.delivered > 0 || repairNow_)) {
    cwnd_ = prr_.window(progress.delivered, pipe(), ssthresh_, mss_);
  }

  bool restart = progress.acked > 0;
  if (!agreed_.sack && state_ == State::kFastRecovery && restart) {  // RFC 6582 section 3.2, step 3
    restart = !partialAck_;
    partialAck_ = true;
  }
  if (restart) restartRto();
  if (progress.acked > 0 || board_.sackedSegments() > 0) scheduleProbe();
  sendWhatMay();
}

// Brings the scoreboard up to date.
Sender::Progress Sender::take(const Ack& ack) {
  Progress p;
  p.acked = ack.upTo - una_;
  Time first = kNever;
  bool ambiguous = false;
  std::optional<Time> echoed = ack.echoed;
  auto delivered = [&](const SentSegment& s) {
    p.delivered += s.size;
    if (options_.rack) rack_.onDelivered(s, now(), echoed);
    if (first == kNever && !s.retransmitted) first = s.sentAt;
  };
  board_.acknowledge(ack.upTo, delivered, [&](const SentSegment& s) {
    ++p.segments;
    p.newestSentAt = std::max(p.newestSentAt, s.sentAt);
    ambiguous |= s.retransmitted;
  });
  una_ = ack.upTo;
  echoed.reset();
  if (agreed_.sack) board_.sack(ack.sacks.data(), ack.sackCount, delivered);
  sampleRtt(ack, first, ambiguous, p.acked > 0);
  if (p.acked > 0 && congestion_) {
    congestion_->observe({now(), p.acked, ack.echo, p.newestSentAt, rto_.srtt(), true});
  }
  return p;
}

// Karn's rule, or timestamps (RFC 7323 section 4). `sentAt`: of the first segment that newly arrived.
void Sender::sampleRtt(const Ack& ack, Time sentAt, bool ambiguous, bool progress) {
  if (!ambiguous && sentAt != kNever)
    rto_.onSample(now() - sentAt, now());
  else if (progress && ack.echoed)
    rto_.onSample(now() - *ack.echoed, now());
}

// Without SACK each duplicate ACK stands for a segment that has arrived: pipe() counts them. A partial ACK
// takes back those that were for what it covers (RFC 6582 section 3.2, step 3).
void Sender::countDuplicates(const Ack& ack, const Progress& progress, bool windowMoved) {
  bool duplicate = progress.acked == 0 && ack.pure && !windowMoved && !board_.empty();
  if (duplicate) {
    ++dupAcks_;
    bool stale = una_ <= recoverAt_ && recoverAt_ > 0;  // RFC 6582 section 3.2, step 1
    if (state_ == State::kOpen && dupAcks_ == dupThreshold() && !stale) board_.markLost(board_.firstId());
    return;
  }
  if (progress.acked == 0) return;
  if (state_ != State::kFastRecovery) {
    dupAcks_ = 0;
    return;
  }
  dupAcks_ -=
      std::min<uint32_t>(dupAcks_, static_cast<uint32_t>(std::max<uint64_t>(progress.segments, 1)) - 1);
  if (board_.empty()) return;
  board_.markLost(board_.firstId());
  repairNow_ = true;
}

uint32_t Sender::dupThreshold() const {
  return SackCounting::threshold(options_.earlyRetransmit, board_.size(), hasNew());
}

// True when something is lost that was not sent again.
bool Sender::findLosses() {
  reorderAt_ = kNever;
  if (board_.empty()) return false;
  if (options_.rack)
    reorderAt_ = rack_.findLost(board_, recovering(), rto_.srtt(), now());
  else if (agreed_.sack && state_ != State::kTimeoutRecovery)
    counting_.findLost(board_, dupThreshold());
  return board_.hasRepair();
}

// The receiver knows that it was sent, and had it arrived, it would have come before.
void Sender::loseUpTo(uint64_t end) {
  for (uint32_t id = board_.firstId(); id != board_.endId() && board_.at(id).end() <= end; ++id) {
    if (!board_.at(id).retransmitted) board_.markLost(id);
  }
}

void Sender::endRecovery() {
  if (state_ == State::kFastRecovery) cwnd_ = ssthresh_;
  state_ = State::kOpen;
  dupAcks_ = 0;
  repairNow_ = false;
  lateAt_ = UINT64_MAX;
  rack_.onRecoveryEnd();
}

void Sender::beginFastRecovery() {
  ++stats_.fastRecoveries;
  bool reacted = una_ < markedUpTo_ && congestion_->markSuffices();
  if (reacted)
    ssthresh_ = cwnd_;
  else
    cutForLoss();
  prr_.begin(board_.flight());
  if (!options_.prr) cwnd_ = ssthresh_;
  state_ = State::kFastRecovery;
  recoverAt_ = markedUpTo_ = next_;
  partialAck_ = false;
  repairNow_ = true;
  counting_.onRecovery();
  probe_.forget();
}

// Limited transmit is no part of what was in flight (RFC 5681 section 3.2, step 2).
void Sender::cutForLoss() {
  double flight = std::min(static_cast<double>(board_.flight()), cwnd_);
  ssthresh_ = std::max(congestion_->afterLoss(cwnd_, flight, now()), least());
}

// RFC 3168 section 6.1.2: once for each window of data.
bool Sender::cutForMark() {
  if (state_ != State::kOpen || una_ <= markedUpTo_) return false;
  ++stats_.marks;
  ssthresh_ = cwnd_ = std::max(congestion_->afterMark(cwnd_, now()), least());
  markedUpTo_ = next_;
  cwr_ = true;
  return true;
}

// Not while a window is reduced: Linux and ns-3 wait for its end after a mark, too.
void Sender::grow(const Ack& ack, const Progress& progress) {
  if (state_ == State::kFastRecovery || (state_ == State::kOpen && una_ <= markedUpTo_)) return;
  bool slowStart = cwnd_ < ssthresh_;
  bool used = usage_.used(cwnd_, slowStart);
  if (!slowStart) {
    cwnd_ =
        congestion_->grow(cwnd_, {now(), progress.acked, ack.echo, progress.newestSentAt, rto_.srtt(), used});
    return;
  }
  uint32_t limit = state_ == State::kTimeoutRecovery ? 1 : options_.slowStartLimit;
  double step = std::min(static_cast<double>(progress.acked), static_cast<double>(limit) * mss_);
  if (used) cwnd_ = std::min(cwnd_ + step, ssthresh_);
}

// ---- what may be sent

bool Sender::fits(uint64_t bytes) const {
  uint64_t inFlight = options_.limitedTransmit || recovering() ? pipe() : board_.flight();
  return static_cast<double>(inFlight + bytes) <= cwnd_ || inFlight == 0;
}

uint32_t Sender::nextSize() const {
  return static_cast<uint32_t>(std::min<uint64_t>(mss_, end_ - next_));
}

bool Sender::hasNew() const {
  return next_ < end_ && next_ + nextSize() <= peerEnd_;
}

void Sender::sendWhatMay() {
  if (!open_) return;
  if (board_.empty()) restartAfterIdle();
  if (repairNow_ && board_.hasRepair()) sendRepair(board_.nextRepair());
  repairNow_ = false;
  bool limited = false, news = false;
  while (!limited) {
    if (board_.hasRepair()) {
      uint32_t id = board_.nextRepair();
      limited = !fits(board_.at(id).size);
      if (!limited) sendRepair(id);
    } else if (hasNew()) {
      limited = !fits(nextSize());
      if (!limited) sendNew(), news = true;
    } else if (uint32_t id = nextDoubtful(); id != Scoreboard::kNone) {
      limited = !fits(board_.at(id).size);
      if (!limited) sendRepair(id);
    } else {
      break;
    }
  }
  usage_.onSent(una_, next_, board_.flight(), limited);
  if (news) scheduleProbe();
  setAlarm();
}

// What counting has not found lost goes when nothing else does (RFC 6675 section 4, NextSeg() rule 3).
uint32_t Sender::nextDoubtful() {
  bool counts = state_ == State::kFastRecovery && agreed_.sack && !options_.rack;
  return counts ? counting_.nextDoubtful(board_) : Scoreboard::kNone;
}

void Sender::sendNew() {
  uint32_t size = nextSize();
  DataSegment segment{{next_, next_ + size}, false, std::exchange(cwr_, false)};
  board_.append(next_, size, now());
  next_ += size;
  ++stats_.sent;
  if (state_ == State::kFastRecovery) prr_.onSent(size);
  lastSent_ = now();
  if (rtoAt_ == kNever) restartRto();
  outlet_.transmit(segment);
}

void Sender::sendRepair(uint32_t id) {
  board_.resend(id, now());
  const SentSegment& s = board_.at(id);
  ++stats_.sent;
  ++stats_.retransmitted;
  if (state_ == State::kFastRecovery) prr_.onSent(s.size);
  lastSent_ = now();
  if (id == board_.firstId()) restartRto();  // as Linux: the repair has its whole time, too
  outlet_.transmit({{s.begin, s.end()}, true, false});
}

// RFC 5681 section 4.1.
void Sender::restartAfterIdle() {
  double initial = static_cast<double>(options_.initialWindow) * mss_;
  if (!options_.idleRestart || lastSent_ == Time::min() || !hasNew()) return;
  if (now() - lastSent_ <= rto_.value() || cwnd_ <= initial) return;
  ++stats_.idleRestarts;
  cwnd_ = initial;
}

// ---- timers

// RFC 8985 section 7.2: while nothing is known to be missing.
void Sender::scheduleProbe() {
  probeAt_ = kNever;
  bool wanted = options_.tlp && state_ == State::kOpen && board_.sackedSegments() == 0 &&
                !probe_.outstanding() && !board_.empty();
  if (!wanted) return;
  Duration wait = TailProbe::timeout(rto_.srtt(), board_.size() == 1, options_.maxAckDelay);
  probeAt_ = std::min(now() + std::max(wait, options_.minProbe), rtoAt_);
}

void Sender::setAlarm() {
  if (board_.empty()) rtoAt_ = probeAt_ = reorderAt_ = kNever;
  alarm_.set(std::min({rtoAt_, probeAt_, reorderAt_}));
}

void Sender::onAlarm() {
  if (!open_) return;
  if (probeAt_ <= now()) return probe();
  if (rtoAt_ <= now()) return onTimeout();
  if (findLosses() && state_ == State::kOpen) {
    beginFastRecovery();
    if (options_.prr) cwnd_ = prr_.window(0, pipe(), ssthresh_, mss_);
  }
  sendWhatMay();
}

// RFC 8985 section 7.3: new data, else the last segment again, whatever the window is.
void Sender::probe() {
  probeAt_ = kNever;
  ++stats_.probes;
  bool again = !hasNew();
  if (again)
    sendRepair(board_.endId() - 1);
  else
    sendNew();
  probe_.onSent(next_, again);
  restartRto();
  setAlarm();
}

// RFC 6298 section 5, RFC 5681 section 3.1 (equation 4 only for the first timeout of a segment).
void Sender::onTimeout() {
  ++stats_.timeouts;
  if (lateAt_ != una_) {
    cutForLoss();
    congestion_->onTimeout(now());
  }
  lateAt_ = una_;
  rto_.backOff();
  cwnd_ = mss_;
  state_ = State::kTimeoutRecovery;
  recoverAt_ = markedUpTo_ = next_;
  dupAcks_ = 0;
  probe_.forget();
  probeAt_ = reorderAt_ = kNever;
  if (options_.rack)
    rack_.onTimeout(board_, rto_.srtt(), now());
  else
    counting_.allLost(board_);
  repairNow_ = true;
  restartRto();
  sendWhatMay();
}

}  // namespace braid::sim::tcp
