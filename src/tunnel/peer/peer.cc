#include "tunnel/peer/peer.h"

#include <algorithm>
#include <utility>

#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {
/// Whether staged packets may be sent: the session knows its inner MTU.
bool mayGo(const Session* session) {
  return session && session->knowsInnerMtu();
}

constexpr const char* kKeysDiffer = "pre-shared key differs or is set on one side only";
}  // namespace

Peer::Peer(PeerOptions options, const PeerContext& context, SecretRandom& random, Time now)
    : options_(std::move(options)),
      context_(context),
      events_(context.events, options_.name),
      packets_(context.packets, this),
      random_(random),
      race_(*this, context.pool, context.handshakes, context.attempts, random),
      rekeyTimer_(random),
      staged_(context.pool.quota(PacketUse::kQueued), context.sessions.ended()) {
  staged_.open(now);
}

// Ends the sessions while what they report to still exists.
Peer::~Peer() {
  session_.reset();
  pendingSessions_.clear();
}

void Peer::setOptions(PeerOptions options, Time now) {
  bool moved =
      options.endpoints != options_.endpoints || options.endpointsOver != options_.endpointsOver;
  bool hasOtherKey = options.psk != options_.psk;
  options_ = std::move(options);
  forEachSession([&](Session& s) { s.paths().setKeepalive(options_.keepalive); });
  if (moved) race_.setNextRound(now);
  if (!hasOtherKey) return;
  if (session_) session_->end();
  beginAnew("has another pre-shared key from now on", now);
}

// What was begun with the keys of before is no longer continued.
void Peer::beginAnew(const std::string& why, Time now) {
  if (up_) setUp(false, why + ", a new session begins");
  staged_.open(now);
  pendingSessions_.clear();
  keyNotice_.reset();
  refusal_.clear();
  race_.cancel();
  race_.resetPause();
  race_.setNextRound(now);
}

void Peer::setTunables() {
  forEachSession([](Session& s) { s.setTunables(); });
}

void Peer::setUplinks(const std::vector<UplinkMeterEntry>& uplinks, Time now) {
  std::vector<NamedRoute> before = std::exchange(routes_, routesTo(options_, uplinks));
  if (session_ && session_->role() == KeySchedule::Role::kInitiator) {
    for (const NamedRoute& old : before) {
      bool stays = std::any_of(routes_.begin(), routes_.end(),
                               [&](const NamedRoute& r) { return r.name == old.name; });
      if (!stays) session_->closeSubflow(old.name, now);
    }
  }
  race_.retarget(routes_, now);
  openSubflows(now);
  race_.setNextRound(std::min(race_.nextRound(), now));
  connect(now);
}

void Peer::openSubflows(Time now) {
  if (!session_ || session_->role() != KeySchedule::Role::kInitiator) return;
  for (const NamedRoute& r : routes_) {
    if (session_->openSubflow(r.name, r.uplink, r.route, now))
      session_->setPreference(r.name, r.own, r.peers, r.ceiling, now);
  }
}

SessionSecrets Peer::mixed(const SessionSecrets& exported) const {
  return options_.psk ? mixedWith(*options_.psk, exported) : exported;
}

SessionIndex::Handle Peer::makeSession(const SessionSecrets& secrets, KeySchedule::Role role,
                                       Time now) {
  SessionContext context{context_.pool, random_, events_, packets_, rateLimits_, context_.shared};
  auto session = std::make_unique<Session>(secrets, role, context_.options, context, now);
  session->paths().setKeepalive(options_.keepalive);
  RestartNotice notice = restartNoticeOf(secrets);
  if (role == KeySchedule::Role::kInitiator) awaited_ = notice;
  return context_.sessions.add(*this, std::move(session), notice);
}

// ---- initiator

void Peer::connect(Time now) {
  if (routes_.empty()) return;
  if (!needsHandshake(now)) return race_.cancel();
  stepRace(now);
  if (needsHandshake(now) && race_.begin(routes_, now)) stepRace(now);
}

void Peer::stepRace(Time now) {
  bool wasTrying = race_.isTrying(), renews = !needsSession(now);
  std::optional<SessionSecrets> secrets = race_.step(options_.pin, now);
  for (std::string failure; race_.pollFailure(failure);)
    events_.tell(Event::Kind::kHandshakeFailed,
                 renews ? "no fresh keys: " + failure : std::move(failure));
  if (renews && wasTrying && !secrets && !race_.isTrying()) rekeyTimer_.onFailed(now);
  if (!secrets) return;
  rekeyTimer_.onHandshake();
  if (renews) {
    race_.resetPause();
    return session_->renewal().propose(mixed(*secrets), now);
  }
  if (up_) setUp(false, "is silent, a new session begins");
  replaceSession(makeSession(mixed(*secrets), KeySchedule::Role::kInitiator, now), now);
  refusable_ = keyNoticeOf(*secrets);
  openSubflows(now);
}

bool Peer::onHandshakeDatagram(const Route& from, ByteView bytes, Time now) {
  if (!race_.onDatagram(from, bytes, now)) return false;
  connect(now);
  return true;
}

// The sender of a valid notice has lost its keys, so that it cannot read what this side sends in
// the session. A notice also counts when the session has already ended: its initiator may be in a
// long pause between two rounds.
bool Peer::onRestartNotice(const RestartNotice& notice, Time now) {
  if (!awaited_ || !(*awaited_ == notice)) return false;
  if (session_ && session_->id() != notice.session)
    return false;  // a session that the peer began has replaced it
  awaited_.reset();
  if (up_) setUp(false, "has restarted, a new session begins");
  replaceSession({}, now);
  race_.cancel();
  race_.resetPause();
  race_.setNextRound(now);
  connect(now);
  return true;
}

// The pause before the next round has grown with each round, because nothing has reset it: a
// configuration that is wrong costs a handshake in 8 s.
bool Peer::onKeyNotice(const KeyNotice& notice, Time now) {
  if (!refusable_ || !(*refusable_ == notice)) return false;
  if (!session_ || session_->id() != notice.session || session_->confirmed()) return false;
  refusable_.reset();
  refuse();
  replaceSession({}, now);
  connect(now);
  return true;
}

void Peer::refuse() {
  refusal_ = kKeysDiffer;
  events_.tell(Event::Kind::kHandshakeFailed,
               refusal_ + "; give both gateways the same 'psk', or none");
}

std::optional<KnownInitiator> Peer::forgetKeys(const std::string& why, Time now) {
  std::optional<KnownInitiator> known = knownInitiator(now);
  replaceSession({}, now);
  beginAnew(why, now);
  return known;
}

// ---- responder

// The sender has finished a handshake, so it has the peer's private key; and yet nothing opens.
void Peer::onUnopened(const Session& session, const Route& from, Time now) {
  const PendingSessions::Candidate* refused = pendingSessions_.onUnopened(session, now);
  if (!refused) return;
  if (refused->keyNotices == 1) refuse();
  keyNotice_.emplace(refused->notice, from);
}

std::optional<KnownInitiator> Peer::knownInitiator(Time now) const {
  const Session* used = session();
  if (!used || used->role() != KeySchedule::Role::kResponder || options_.hasEndpoints())
    return std::nullopt;
  KnownInitiator known{options_.pin, context_.sessions.find(used->id()).notice, {}};
  SessionStatus status;
  used->fill(status, now);
  for (const SubflowStatus& s : status.subflows) {
    if (s.proven && known.routes.size() < KnownInitiator::kMostRoutes)
      known.routes.push_back(s.route);
  }
  return known;
}

void Peer::onAccepted(const SessionSecrets& secrets, Time now) {
  if (SessionIndex::Handle session =
          makeSession(mixed(secrets), KeySchedule::Role::kResponder, now))
    pendingSessions_.add(std::move(session), keyNoticeOf(secrets));
}

// Both sides have begun at once, and each has the other's session as a pending one. If both sides
// took the other's session, none would be left. So the session with the smaller id stays, unless it
// turns out to be of no use.
bool Peer::ownSessionStays(const Session& candidate, Time now) const {
  if (needsSession(now) || session_->role() != KeySchedule::Role::kInitiator) return false;
  return std::chrono::abs(candidate.start() - session_->start()) < kReconnectAfter &&
         session_->id() < candidate.id();
}

// ---- both

// The new keys are given to the session in which the peer asks for them, whichever that is.
void Peer::stepKeyUpdate(Session& session, Time now) {
  KeyUpdate& renewal = session.renewal();
  if (std::optional<uint32_t> wish = renewal.takeWish()) {
    SessionIndex::Handle fresh = pendingSessions_.take(*wish);
    renewal.answer(*wish, fresh ? &fresh->renewal() : nullptr, now);
  }
  if (!renewal.takeRefusal()) return;
  events_.tell(Event::Kind::kHandshakeFailed,
               "no fresh keys: the peer has forgotten their handshake");
  rekeyTimer_.onFailed(now);
}

std::optional<Drop> Peer::onDatagram(Session& session, const DatagramHeader& header,
                                     const Route& from, Ecn ecn, Packet datagram, Time now) {
  bool lived = this->session();
  std::optional<Drop> drop = session.onDatagram(header, from, ecn, std::move(datagram), now);
  if (drop == Drop::kBadSeal) onUnopened(session, from, now);
  if (lived && !this->session())
    staged_.open(now);  // packets that come before the next timer call are staged, too
  stepKeyUpdate(session, now);
  if (auto chosen =
          pendingSessions_.takeChosen([&](const Session& s) { return !ownSessionStays(s, now); })) {
    replaceSession(std::move(chosen), now);
    refusal_.clear();
  }
  if (!up_ && this->session() && now <= downAt()) {
    race_.resetPause();
    setUp(true, "is up from " + from.remote.toString());
  }
  if (up_ && !staged_.empty() && mayGo(this->session())) returnStaged();
  return drop;
}

bool Peer::onSendError(const Route& route, Time now) {
  bool ours = false;
  forEachSession([&](Session& s) { ours |= s.onSendError(route, now); });
  return ours;
}

bool Peer::onTooBig(const Route& route, size_t size, Time now) {
  bool ours = false;
  forEachSession([&](Session& s) { ours |= s.onTooBig(route, size, now); });
  return ours;
}

void Peer::close() {
  forEachSession([](Session& s) { s.close(); });
  race_.cancel();
  routes_.clear();
}

bool Peer::pollDatagram(Datagram& out, Time now) {
  if (keyNotice_) {
    auto [notice, to] = *std::exchange(keyNotice_, std::nullopt);
    // Without a buffer it is lost, as it might be on its way.
    if (Packet packet = context_.pool.allocate()) {
      writeKeyNotice(notice, packet);
      out = {to, Ecn::kNotEct, std::move(packet)};
      return true;
    }
  }
  bool sent = race_.pollDatagram(out);
  forEachSession([&](Session& s) { sent = sent || s.pollDatagram(out, now); });
  return sent;
}

// ---- timers

/// When the session is given up because nothing was received for kIdleTimeout.
Time Peer::idleTimeoutAt() const {
  return session_ ? session_->lastHeard() + kIdleTimeout : kNever;
}

/// When nobody waits for the queued packets any longer, because no path is usable; kNever: a path
/// is usable.
Time Peer::downAt() const {
  if (!session_ || session_->unusableSince() == kNever) return kNever;
  return session_->unusableSince() + session_->patience();
}

/// When another session is needed; kNever: the present one is usable.
Time Peer::reconnectAt() const {
  if (!session_ || session_->over()) return Time::min();
  return session_->unusableSince() == kNever ? kNever : session_->unusableSince() + kReconnectAfter;
}

/// When a handshake beside the session is due, for new keys; kNever: not before something else
/// happens.
Time Peer::rekeyAt() const {
  if (!session() || session_->role() != KeySchedule::Role::kInitiator) return kNever;
  const KeyUpdate& renewal = session_->renewal();
  return renewal.isUnderWay() ? kNever
                              : rekeyTimer_.dueAt(renewal.renewedAt(), context_.options.rekeyAfter);
}

void Peer::onTimer(Time now) {
  forEachSession([&](Session& s) { s.onTimer(now); });
  bool lost = session_ && (session_->isDone() || now > idleTimeoutAt());
  if (up_ && (lost || now > downAt() || !session_)) setUp(false, "is down");
  if (lost) replaceSession({}, now);
  pendingSessions_.onTimer(now);
  if (mayComeUp()) setUp(true, "is up again");
  if (staged_.deadline() <= now || (up_ && !staged_.empty() && mayGo(this->session())))
    returnStaged();
}

Time Peer::nextDeadline(Time now) const {
  Time next = std::min(
      {idleTimeoutAt(), pendingSessions_.nextDeadline(), race_.nextDeadline(), staged_.deadline()});
  forEachSession([&](const Session& s) { next = std::min(next, s.nextDeadline(now)); });
  if (session_ && session_->isDone()) next = std::min(next, now);
  if (up_ && !staged_.empty() && mayGo(session())) next = std::min(next, now);
  if (up_ && downAt() != kNever) next = std::min(next, downAt() + 1ms);
  if (!routes_.empty() && !race_.isTrying())
    next = std::min(next, std::max(std::min(reconnectAt(), rekeyAt()), race_.nextRound()));
  return next;
}

// Three things happen in a timer call without a deadline: the peer comes up; it goes down a little
// before downAt() + 1 ms; and a connection race ends that a session has made unnecessary.
std::optional<Time> Peer::restsUntil(Time now) const {
  if (mayComeUp() || (up_ && downAt() != kNever)) return std::nullopt;
  if (race_.isTrying() && !needsHandshake(now)) return std::nullopt;
  bool rest = true;
  forEachSession([&](const Session& s) { rest = rest && s.isAtRest(); });
  if (!rest) return std::nullopt;
  Time deadline = nextDeadline(now);
  return deadline > now ? std::optional(deadline) : std::nullopt;
}

void Peer::setUp(bool up, const std::string& reason) {
  up_ = up;
  if (up) refusal_.clear();
  events_.tell(up ? Event::Kind::kPeerUp : Event::Kind::kPeerDown, reason);
  if (up) returnStaged();
}

void Peer::abandon(Time now) {
  if (up_) setUp(false, "does not answer, another peer of its group stands for it");
  if (session_) replaceSession({}, now);
  returnStaged();
  race_.resetPause();
}

// What the last session leaves is sent through the next one. If there is none yet, it is staged,
// because the peer may be back at once.
void Peer::replaceSession(SessionIndex::Handle next, Time now) {
  staged_.open(now);
  SessionIndex::Handle last = std::exchange(session_, std::move(next));
  if (last) last->handBack();
}

// A packet that cannot be sent after all is answered. It is staged again if it is too large for
// what is known of the paths until now.
void Peer::returnStaged() {
  StagedPacket next;
  while (staged_.poll(next))
    packets_.push(PacketEvent::Kind::kReturned, std::move(next.packet), next.origin);
}

PeerStatus Peer::status(Time now, size_t flows) const {
  PeerStatus s;
  s.name = options_.name;
  s.pin = formatPin(options_.pin);
  s.up = up_;
  s.group = options_.group;
  s.inUse = inUse;
  s.failedRenewals = rekeyTimer_.failed();
  s.refusal = refusal_;
  if (session_) session_->fill(s, now, flows);
  return s;
}

}  // namespace braid
