#include "tunnel/session/outbound.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
/// A frame without meaning, so that every peer is tested to skip unknown frames (GREASE, RFC 8701).
/// The token, which is random, chooses its type and length.
OptionalFrame noiseOf(const PathToken& token) {
  constexpr uint8_t kTypes = OptionalFrame::kLast - OptionalFrame::kFirst + 1;
  return {static_cast<uint8_t>(OptionalFrame::kFirst + token[0] % kTypes),
          static_cast<uint16_t>(token[1] % (kMaxGrease + 1))};
}
}  // namespace

Outbound::Outbound(PacketPool& pool, DatagramSealer& sealer, PathManager& paths,
                   ControlFrames& controls, DataTracker& dataTracker, SessionStreams& streams,
                   ProactiveRecovery& proactiveRecovery, FecReceiver& receiver, DataSender& data)
    : pool_(pool),
      sealer_(sealer),
      roles_(paths.roles()),
      subflows_(paths.subflows()),
      controls_(controls),
      dataTracker_(dataTracker),
      streams_(streams),
      proactiveRecovery_(proactiveRecovery),
      receiver_(receiver),
      data_(data),
      loadTest_(subflows_) {}

bool Outbound::poll(Datagram& out, Time now) {
  return pollUrgent(out, now) || pollControl(out, now) || proactiveRecovery_.pollTail(out, now) ||
         pollRepair(out, now) || proactiveRecovery_.pollSecond(out, now) || pollNewData(out, now) ||
         proactiveRecovery_.pollIdle(data_.hasNew(), out, now) || pollMtuProbe(out, now) ||
         pollLoadTest(out, now);
}

// ---- urgent and control

bool Outbound::pollUrgent(Datagram& out, Time now) {
  for (size_t i = 0; i < subflows_.size(); ++i) {
    Subflow& s = subflows_[(firstUrgent_ + i) % subflows_.size()];
    bool own = s.mustSend();
    Subflow* carrier = own ? &s : ackCarrier(s);
    bool speaks = carrier && carrier->sender().canNumber() && (own || s.receiver().acks().due(now));
    if (!speaks && !s.hasPathFrame(now)) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    firstUrgent_ = (firstUrgent_ + i + 1) % subflows_.size();
    if (std::optional<Subflow::PathFrame> path = s.takePathFrame(now))
      return sendPathFrame(s, *path, std::move(buffer), out, now);
    DatagramBuilder build(*carrier, std::move(buffer), carrier->route(),
                          own ? carrier->mtu().current() : carrier->ackRoom());
    if (own) build.addTracked(PingFrame{});
    bool loss = s.receiver().acks().tellsLoss();
    // A probe may be lost, so the pending ACKs are sent on another path.
    if (!own || s.usable() || !subflows_.fastest()) build.addAck(s, now);
    // After the ACK, because a packet that was decoded is lost for the ACK but needs no repair.
    if (loss) receiver_.write(build);
    if (carrier->admission().isOpen(now) || (own && !subflows_.anyUsable())) data_.fill(build, now);
    return build.finish(sealer_, out, now);
  }
  return false;
}

bool Outbound::sendPathFrame(Subflow& subflow, const Subflow::PathFrame& path, Packet buffer,
                             Datagram& out, Time now) {
  DatagramBuilder build(subflow, std::move(buffer), path.route, MtuDiscovery::kMinDatagram);
  if (path.response) build.add(*path.response);
  // From its first datagram on, the peer knows what a subflow is to be used for, and its name.
  const SubflowPreferenceFrame* wish = roles_.wishFor(subflow);
  bool padded = path.size == MtuDiscovery::kMinDatagram;
  if (wish && padded) build.add(*wish);
  if (std::string_view name = subflow.nameToTell(); !name.empty() && padded)
    build.add(SubflowNameFrame{name});
  if (path.challenge) build.add(*path.challenge);
  constexpr size_t kObserving =
      PathValidator::kSmallestChallenge + kFrame<ObservedAddressFrame>.largest;
  if (path.challenge && path.size >= kObserving) build.add(ObservedAddressFrame{path.route.remote});
  if (path.challenge && padded) build.add(noiseOf(path.challenge->token));
  if (path.size) build.padTo(path.size);
  if (path.ect) build.markEct();
  return build.finish(sealer_, out, now);
}

// Packets that arrived on a silent or closed path are acknowledged on another one, so that they are
// not resent. Losses are reported on the fastest path, so that they are repaired sooner.
Subflow* Outbound::ackCarrier(Subflow& of) {
  if (of.usable() && !of.receiver().acks().tellsLoss()) return &of;
  if (Subflow* best = subflows_.fastest()) return best;
  return of.ackRoom() == 0 ? nullptr : &of;
}

bool Outbound::pollControl(Datagram& out, Time now) {
  while (dataTracker_.hasSkips() && !controls_.isFull()) controls_.add(*dataTracker_.takeSkip());
  queueStreamFrames();
  if (!receiver_.hasWord() && !controls_.isWaiting()) return false;
  Subflow* s = subflows_.fastest();
  if (!s || !s->sender().canNumber()) return false;
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(*s, std::move(buffer));
  controls_.write(build);
  receiver_.write(build);
  build.addAck(now);
  if (s->admission().isOpen(now)) data_.fill(build, now);
  return build.finish(sealer_, out, now);
}

// Stream resets and credit stay with the streams while many control frames are in flight, so that
// other control frames find room.
void Outbound::queueStreamFrames() {
  StreamResetFrame reset;
  while (!controls_.isCrowded() && streams_.pollReset(reset)) controls_.add(reset);
  StreamCreditFrame credit;
  while (!controls_.isCrowded() && streams_.pollCredit(credit)) controls_.add(credit);
}

bool Outbound::pollMtuProbe(Datagram& out, Time now) {
  for (Subflow* s : subflows_) {
    size_t size = s->sender().mtuProbe();
    if (size == 0 || !s->sender().canNumber()) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    DatagramBuilder build(*s, std::move(buffer), s->route(), size);
    build.makeMtuProbe(size);
    s->sender().onMtuProbeSent(size, now);
    return build.finish(sealer_, out, now);
  }
  return false;
}

bool Outbound::pollLoadTest(Datagram& out, Time now) {
  if (!loadTest_.isRunning()) return false;
  loadTest_.endIfDone(now);
  for (size_t i = 0; i < subflows_.size(); ++i) {
    size_t position = (firstInTest_ + i) % subflows_.size();
    Subflow& s = subflows_[position];
    if (!loadTest_.includes(s) || s.admission().opensForTestAt() > now || !s.sender().canNumber())
      continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    firstInTest_ = position + 1;
    DatagramBuilder build(s, std::move(buffer));
    build.addTracked(PingFrame{});
    build.addAck(now);
    build.padTo(s.mtu().current());
    loadTest_.onSent(s.mtu().current());
    return build.finish(sealer_, out, now);
  }
  return false;
}

bool Outbound::pollClose(const CloseFrame& close, size_t& left, Datagram& out, Time now) {
  while (left > 0) {
    Subflow& s = subflows_[--left];
    if (!s.usable() || !s.sender().canNumber()) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    DatagramBuilder build(s, std::move(buffer));
    build.add(close);
    return build.finish(sealer_, out, now);
  }
  return false;
}

// ---- data

bool Outbound::pollRepair(Datagram& out, Time now) {
  if (data_.pollRepair(out, now)) return true;
  // Packets that were given up are reported to the peer at once, because nothing else may be sent
  // for long.
  return dataTracker_.hasSkips() && pollControl(out, now);
}

bool Outbound::pollNewData(Datagram& out, Time now) {
  DataSender::Outcome outcome = data_.pollNew(out, now);
  if (outcome != DataSender::Outcome::kNothing) return outcome == DataSender::Outcome::kSent;
  roles_.onDrained(now);
  for (Subflow* s : subflows_) {
    // A subflow that a load test fills is limited by its path, not by the application.
    if (s->admission().isOpen(now) && !loadTest_.includes(*s)) s->sender().setAppLimited();
  }
  return false;
}

// ---- when to ask again

Time Outbound::nextDeadline(Time now) const {
  Time next = data_.nextDeadline(now);
  if (loadTest_.isRunning()) {
    next = std::min(next, std::max(now, loadTest_.endsAt()));
    for (const Subflow* s : subflows_) {
      Time opens = s->admission().opensForTestAt();
      if (loadTest_.includes(*s) && opens > now) next = std::min(next, opens);
    }
  }
  return next;
}

// While the memory that all sessions share is used up, a session that needs some asks at every
// poll, because other sessions free it.
bool Outbound::isAtRest() const {
  auto canNumber = [](const Subflow* s) { return s->sender().canNumber(); };
  bool asksForRoom = data_.hasWaiting() && !dataTracker_.mayCreate();
  return !asksForRoom && !loadTest_.isRunning() &&
         std::all_of(subflows_.begin(), subflows_.end(), canNumber);
}

}  // namespace braid
