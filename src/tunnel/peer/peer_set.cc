#include "tunnel/peer/peer_set.h"

#include <algorithm>

namespace braid {

namespace {
size_t mtuOf(const Peer& peer) {
  const Session* session = peer.session();
  return session ? session->innerMtu() : 0;
}
}  // namespace

std::vector<std::unique_ptr<Peer>> PeerSet::replace(std::vector<PeerOptions> peers,
                                                    const std::vector<UplinkMeterEntry>& uplinks,
                                                    SecretRandom& random, Time now) {
  std::map<Pin, std::unique_ptr<Peer>> before;
  for (Entry& entry : peers_) before.emplace(entry.peer->options().pin, std::move(entry.peer));
  peers_.clear();
  for (PeerOptions& options : peers) {
    auto same = before.find(options.pin);
    Entry entry;
    if (same != before.end()) {
      entry.peer = std::move(same->second);
      before.erase(same);
      entry.peer->setOptions(std::move(options), now);
    } else {
      entry.peer = std::make_unique<Peer>(std::move(options), context_, random, now);
    }
    entry.peer->position = peers_.size();
    entry.peer->setUplinks(uplinks, now);
    peers_.push_back(std::move(entry));
  }
  wakeAll();
  std::vector<std::unique_ptr<Peer>> gone;
  for (auto& [pin, peer] : before) gone.push_back(std::move(peer));
  return gone;
}

void PeerSet::clear() {
  peers_.clear();
  wakeAll();
}

void PeerSet::setUplinks(const std::vector<UplinkMeterEntry>& uplinks, Time now) {
  forEach([&](Peer& peer) { peer.setUplinks(uplinks, now); });
  wakeAll();
}

void PeerSet::setTunables() {
  forEach([](Peer& peer) { peer.setTunables(); });
  wakeAll();
}

void PeerSet::close() {
  forEach([](Peer& peer) { peer.close(); });
  wakeAll();
}

// ---- what happens to peers

// Several peers may have the same endpoint: the datagram belongs to the one whose keys open it.
bool PeerSet::onHandshakeDatagram(const Route& from, ByteView bytes, Time now) {
  auto takes = [&](Peer& peer) { return peer.onHandshakeDatagram(from, bytes, now); };
  Peer* meant = attempts_.firstOn(from, takes);
  if (meant) wake(*meant);
  return meant != nullptr;
}

// The peer is found by its session, or, if that has ended, by its handshake on the route.
bool PeerSet::onRestartNotice(const Route& from, const RestartNotice& notice, Time now) {
  auto takes = [&](Peer& peer) { return peer.onRestartNotice(notice, now); };
  Peer* meant = sessions_.find(notice.session).peer;
  if (!meant || !takes(*meant)) meant = attempts_.firstOn(from, takes);
  if (meant) wake(*meant);
  return meant != nullptr;
}

bool PeerSet::onKeyNotice(const KeyNotice& notice, Time now) {
  Peer* meant = sessions_.find(notice.session).peer;
  if (!meant || !meant->onKeyNotice(notice, now)) return false;
  wake(*meant);
  return true;
}

void PeerSet::onAccepted(const SessionSecrets& secrets, Time now) {
  auto isMeant = [&](const Entry& entry) { return entry.peer->options().pin == secrets.peer; };
  auto found = std::find_if(peers_.begin(), peers_.end(), isMeant);
  if (found == peers_.end()) return;
  wake(*found->peer);
  found->peer->onAccepted(secrets, now);
}

bool PeerSet::pollDatagram(Datagram& out, Time now) {
  wakeDue(now);
  if (awake_.empty()) return false;
  auto first = std::lower_bound(awake_.begin(), awake_.end(), turn_ % peers_.size());
  auto at = static_cast<size_t>(first - awake_.begin());
  for (size_t left = awake_.size(); left > 0; --left) {
    if (at >= awake_.size()) at = 0;
    const Entry& entry = peers_[awake_[at]];
    uint64_t exhausted = context_.pool.exhausted();
    if (entry.peer->pollDatagram(out, now)) {
      turn_ = (awake_[at] + 1) % peers_.size();
      return true;
    }
    if (std::optional<Time> deadline = restsUntil(entry, exhausted, now)) {
      rest(at, *deadline);
    } else {
      ++at;
    }
  }
  return false;
}

Time PeerSet::nextDeadline(Time now) const {
  Time next = resting_.first();
  for (Place place : awake_) next = std::min(next, peers_[place].peer->nextDeadline(now));
  return next;
}

size_t PeerSet::innerMtu() const {
  size_t smallest = 0;
  auto consider = [&](size_t mtu) {
    if (mtu > 0) smallest = smallest ? std::min(smallest, mtu) : mtu;
  };
  auto used = std::find_if(restingMtus_.begin(), restingMtus_.end(),
                           [](const auto& m) { return m.second > 0; });
  if (used != restingMtus_.end()) consider(used->first);
  for (Place place : awake_) consider(mtuOf(*peers_[place].peer));
  return smallest;
}

DropCounts PeerSet::drops() const {
  DropCounts sum = sessions_.ended();
  forEach([&](const Peer& peer) {
    peer.forEachSession([&](const Session& session) { addDrops(sum, session.drops()); });
  });
  return sum;
}

// ---- awake and at rest

void PeerSet::wake(const Peer& peer) {
  auto place = static_cast<Place>(peer.position);
  if (!resting_.contains(place)) return;
  resting_.remove(place);
  if (size_t mtu = peers_[place].mtu) --restingMtus_[mtu];
  awake_.insert(std::lower_bound(awake_.begin(), awake_.end(), place), place);
}

void PeerSet::wakeDue(Time now) {
  while (resting_.first() <= now) wake(*peers_[resting_.firstId()].peer);
}

void PeerSet::wakeAll() {
  resting_.resize(peers_.size());
  restingMtus_.clear();
  awake_.clear();
  for (Place place = 0; place < peers_.size(); ++place) awake_.push_back(place);
  settingsAreNew_ = true;
}

// After new settings the next timer call may do something, whatever the deadlines are. And a poll
// returns nothing while no buffer is free, whatever there is to send.
std::optional<Time> PeerSet::restsUntil(const Entry& entry, uint64_t exhausted, Time now) const {
  if (settingsAreNew_ || exhausted != context_.pool.exhausted()) return std::nullopt;
  return entry.peer->restsUntil(now);
}

void PeerSet::rest(size_t awakeAt, Time deadline) {
  Place place = awake_[awakeAt];
  Entry& entry = peers_[place];
  awake_.erase(awake_.begin() + static_cast<ptrdiff_t>(awakeAt));
  resting_.set(place, deadline);
  entry.mtu = mtuOf(*entry.peer);
  if (entry.mtu > 0) ++restingMtus_[entry.mtu];
}

}  // namespace braid
