#include "simnet/tcp/sender.h"

#include <algorithm>
#include <utility>

namespace braid::sim::tcp {

namespace {
/// With more losses of the SYN or SYN-ACK than this, the initial window is one segment (RFC 6928
/// section 2).
constexpr uint32_t kSynLosses = 1;
/// When a receiver seems to have reneged on a SACK, the sender waits this long, or half a round
/// trip, until it acts, since a later ACK may show otherwise (Linux, tcp_check_sack_reneging()).
constexpr Duration kRenegePatience = 10ms;
}  // namespace

Sender::Sender(Timeline& timeline, SegmentOutlet& outlet, const Options& options)
    : timeline_(timeline),
      outlet_(outlet),
      options_(options),
      timers_(timeline, options, [this](SenderTimers::Kind kind) { onTimer(kind); }) {}

void Sender::open(const Agreement& agreement) {
  agreed_ = agreement;
  mss_ = agreed_.mss;
  peerEnd_ = agreed_.peerWindow;
  detector_.emplace(options_, agreed_.sack);
  window_.emplace(options_, mss_, options_.prr && agreed_.sack,
                  agreed_.synTimeouts > kSynLosses ? 1 : options_.initialWindow);
  if (agreed_.rtt) {
    timers_.rto.onSample(*agreed_.rtt, now());
    if (options_.rackKnowsHandshake) detector_->onHandshake(*agreed_.rtt);
  }
  if (agreed_.synTimeouts > 0) timers_.rto.onSynTimeout();
  open_ = true;
  sendWhatMay();
}

void Sender::write(uint64_t bytes) {
  end_ += bytes;
  sendWhatMay();
}

void Sender::stop() {
  open_ = false;
  timers_.stop();
  timers_.apply();
}

void Sender::reduceMss(uint32_t mss) {
  if (!open_ || mss >= mss_) return;
  mss_ = mss;
  board_.cut(mss);
  sendWhatMay();
}

uint64_t Sender::pipe() const {
  uint64_t pipe = board_.pipe(),
           arrived = detector_ ? uint64_t{detector_->unnamedArrivals()} * mss_ : 0;
  return pipe - std::min(pipe, arrived);
}

// ---- what an ACK says

void Sender::onAck(const Ack& ack) {
  if (!open_ || ack.upTo < una_ || ack.upTo > next_) return;
  bool windowMoved = ack.upTo + ack.window > peerEnd_;
  peerEnd_ = std::max(peerEnd_, ack.upTo + ack.window);
  Progress progress = take(ack);
  adapt(ack, progress, windowMoved);

  bool restart = progress.acked > 0;
  if (!agreed_.sack && window_->phase() == Window::Phase::kFastRecovery &&
      restart) {  // RFC 6582, step 3
    restart = !partialAck_;
    partialAck_ = true;
  }
  if (restart) timers_.restart();
  if (progress.acked > 0 && board_.reneged())
    timers_.restartWith(std::max<Duration>(rto().srtt() / 2, kRenegePatience));
  if (progress.acked > 0 || board_.sackedSegments() > 0) scheduleProbe();
  sendWhatMay();
}

// Updates the scoreboard from an ACK.
Sender::Progress Sender::take(const Ack& ack) {
  Progress p;
  p.acked = ack.upTo - una_;
  Time first = kNever;
  bool ambiguous = false;
  std::optional<Time> echoed = ack.echoed;
  auto delivered = [&](const SentSegment& s) {
    p.delivered += s.size;
    detector_->onDelivered(s, now(), echoed);
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
  return p;
}

// Takes an RTT sample by Karn's rule or by timestamps (RFC 7323 section 4). `sentAt`: when the
// first newly arrived segment was sent.
void Sender::sampleRtt(const Ack& ack, Time sentAt, bool ambiguous, bool progress) {
  if (!ambiguous && sentAt != kNever)
    timers_.rto.onSample(now() - sentAt, now());
  else if (progress && ack.echoed)
    timers_.rto.onSample(now() - *ack.echoed, now());
}

// Finds losses, and lets the window grow or reduces it.
void Sender::adapt(const Ack& ack, const Progress& progress, bool windowMoved) {
  if (progress.acked > 0) window_->observe(eventOf(ack, progress));
  bool recovered = window_->endRecovery(una_);
  if (recovered) detector_->onRecoveryEnd();
  if (ack.dsack) {
    ++stats_.dsacks;
    detector_->onDsack(una_, next_);
  }
  bool probeRepaired = repairsByProbe(ack, progress);
  if (!agreed_.sack) {
    bool duplicate = progress.acked == 0 && ack.pure && !windowMoved && !board_.empty();
    bool stale = una_ <= window_->recoverAt() && window_->recoverAt() > 0;
    repairNow_ |= detector_->onPlainAck(
        board_, {duplicate, progress.acked > 0, stale, progress.segments}, situation());
  }
  bool partial = progress.acked > 0 && window_->phase() == Window::Phase::kFastRecovery;
  if (partial && options_.partialAcks && !board_.empty() && !board_.at(board_.firstId()).resent)
    board_.markLost(board_.firstId());
  if (ack.missingUpTo) LossDetector::loseUpTo(board_, *ack.missingUpTo);
  if (findLosses() && !recovering())
    beginFastRecovery();
  else if (probeRepaired && !recovering())
    window_->onRepairByProbe(inFlight(), now());

  bool marked = (ack.echo && agreed_.ecn) || ack.corrected;
  bool cut = marked && window_->onMark(inFlight(), now());
  if (cut) ++stats_.marks, cwr_ = true;
  bool grows = !recovered || options_.growAfterRecovery;
  if (progress.acked > 0 && grows && !cut) window_->grow(eventOf(ack, progress), una_);
  if (progress.delivered > 0 || repairNow_) window_->onDelivered(progress.delivered, pipe());
}

bool Sender::repairsByProbe(const Ack& ack, const Progress& progress) {
  std::optional<uint64_t> dsackEnd;
  if (ack.dsack) dsackEnd = ack.dsack->end;
  return probe_.onAck(ack.upTo, progress.acked > 0, dsackEnd, ack.sackCount > 0);
}

AckEvent Sender::eventOf(const Ack& ack, const Progress& progress) const {
  return {now(), progress.acked, ack.echo, progress.newestSentAt, rto().srtt(), true};
}

LossDetector::Situation Sender::situation() const {
  return {window_->phase() == Window::Phase::kFastRecovery,
          window_->phase() == Window::Phase::kTimeoutRecovery, hasNew(), rto().srtt(), now()};
}

// Marks lost segments. True when a lost segment waits to be resent.
bool Sender::findLosses() {
  timers_.setReorder(detector_->find(board_, situation()));
  return board_.hasRepair();
}

void Sender::beginFastRecovery() {
  ++stats_.fastRecoveries;
  window_->beginFastRecovery(inFlight(), now());
  detector_->onFastRecovery();
  partialAck_ = false;
  repairNow_ = true;
  probe_.forget();
}

// ---- what may be sent

// Without limited transmit, duplicate ACKs let nothing out before a recovery. A lost segment
// outside a recovery was too large for the path, so it is no longer on its way.
bool Sender::fits(uint64_t bytes) const {
  bool counts = options_.limitedTransmit || recovering() || board_.hasRepair();
  uint64_t onItsWay = counts ? pipe() : board_.flight();
  return static_cast<double>(onItsWay + bytes) <= window_->size() || onItsWay == 0;
}

uint32_t Sender::nextSize() const {
  return static_cast<uint32_t>(std::min<uint64_t>(mss_, end_ - next_));
}

bool Sender::hasNew() const {
  return next_ < end_ && next_ + nextSize() <= peerEnd_;
}

// The segment to resend next; kNone: send new data, if any.
uint32_t Sender::nextRepair() {
  if (board_.hasRepair()) return board_.nextRepair();
  bool doubtful = window_->phase() == Window::Phase::kFastRecovery && !hasNew();
  return doubtful ? detector_->nextDoubtful(board_) : Scoreboard::kNone;
}

void Sender::sendWhatMay() {
  if (!open_) return;
  bool idle =
      board_.empty() && hasNew() && lastSent_ != Time::min() && now() - lastSent_ > rto().value();
  if (idle && options_.idleRestart)
    stats_.idleRestarts += window_->onIdle();  // RFC 5681 section 4.1
  if (std::exchange(repairNow_, false) && board_.hasRepair()) sendRepair(board_.nextRepair());
  bool limited = false, news = false;
  while (!limited) {
    uint32_t id = nextRepair();
    if (id == Scoreboard::kNone && !hasNew()) break;
    limited = !fits(id == Scoreboard::kNone ? nextSize() : board_.at(id).size);
    if (limited) break;
    if (id == Scoreboard::kNone)
      sendNew(), news = true;
    else
      sendRepair(id);
  }
  window_->onUsed(inFlight(), limited);
  if (news) scheduleProbe();
  if (board_.empty()) timers_.stop();
  timers_.apply();
}

void Sender::sendNew() {
  uint32_t size = nextSize();
  DataSegment segment{{next_, next_ + size}, false, std::exchange(cwr_, false)};
  board_.append(next_, size, now());
  next_ += size;
  ++stats_.sent;
  window_->onSent(size);
  lastSent_ = now();
  if (!timers_.runs()) timers_.restart();
  outlet_.transmit(segment);
}

void Sender::sendRepair(uint32_t id) {
  board_.resend(id, now());
  const SentSegment& s = board_.at(id);
  ++stats_.sent;
  ++stats_.retransmitted;
  window_->onSent(s.size);
  lastSent_ = now();
  // as in Linux: the retransmission also gets a full RTO
  if (id == board_.firstId()) timers_.restart();
  outlet_.transmit({{s.begin, s.end()}, true, false});
}

// ---- timers

// RFC 8985 section 7.2: a probe is scheduled only while no loss is known.
void Sender::scheduleProbe() {
  bool wanted = options_.tlp && agreed_.sack && !recovering() && board_.sackedSegments() == 0 &&
                !probe_.outstanding() && !board_.empty();
  if (!wanted) return timers_.clearProbe();
  Duration wait = TailProbe::timeout(rto().srtt(), board_.size() == 1, options_.maxAckDelay);
  timers_.setProbe(std::max(wait, options_.minProbe));
}

void Sender::onTimer(SenderTimers::Kind kind) {
  if (kind == SenderTimers::Kind::kProbe) return probe();
  if (kind == SenderTimers::Kind::kTimeout) return onTimeout();
  if (findLosses() && !recovering()) {
    beginFastRecovery();
    window_->onDelivered(0, pipe());
  }
  sendWhatMay();
}

// RFC 8985 section 7.3: sends new data, else the last segment again, regardless of the window.
void Sender::probe() {
  ++stats_.probes;
  bool again = !hasNew();
  if (again)
    sendRepair(board_.endId() - 1);
  else
    sendNew();
  probe_.onSent(next_, again);
  timers_.restart();
}

// RFC 6298 section 5.
void Sender::onTimeout() {
  ++stats_.timeouts;
  window_->onTimeout(inFlight(), now());
  timers_.rto.backOff();
  probe_.forget();
  timers_.clearProbe();
  timers_.setReorder(kNever);
  if (board_.reneged()) {
    ++stats_.reneged;
    board_.forgetSacks();
  }
  detector_->onTimeout(board_, situation());
  repairNow_ = true;
  timers_.restart();
  sendWhatMay();
}

}  // namespace braid::sim::tcp
