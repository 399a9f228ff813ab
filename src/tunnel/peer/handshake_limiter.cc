#include "tunnel/peer/handshake_limiter.h"

#include <algorithm>
#include <initializer_list>

#include "base/bytes.h"
#include "base/random.h"

namespace braid {

namespace {
struct Ration {
  TokenBucket& bucket;
  const RateLimit& limit;
};

/// Takes a token of each bucket, or of none: a sender that has used up one of its rations takes
/// nothing from those that it shares with others.
bool take(std::initializer_list<Ration> rations, Time now) {
  bool allHave = std::ranges::all_of(
      rations, [&](const Ration& r) { return r.bucket.availableAt(r.limit, 1) <= now; });
  if (!allHave) return false;
  for (const Ration& r : rations) r.bucket.take(r.limit, now);
  return true;
}

/// The first bytes of an address.
Address prefixOf(Address address, ptrdiff_t bytes) {
  std::fill(address.bytes.begin() + bytes, address.bytes.end(), uint8_t{0});
  return address;
}

Address networkOf(const Address& address) {
  return prefixOf(address, address.isV6() ? 4 : 2);
}
}  // namespace

void KnownHosts::add(const Address& host, Key& key) {
  auto [at, isNew] = hosts_.try_emplace(host, &key);
  if (at->second != &key) return;
  std::deque<Address>& hosts = key.second.hosts;
  if (!isNew) std::erase(hosts, host);
  hosts.push_back(host);
  if (hosts.size() <= kEach) return;
  hosts_.erase(hosts.front());
  hosts.pop_front();
}

KnownHosts::Key* KnownHosts::keyOf(const Address& host) const {
  auto found = hosts_.find(host);
  return found == hosts_.end() ? nullptr : found->second;
}

void KnownHosts::keep(const std::vector<Pin>& pins) {
  std::vector<Pin> sorted = pins;
  std::ranges::sort(sorted);
  auto isGone = [&](const Pin& pin) { return !std::ranges::binary_search(sorted, pin); };
  std::erase_if(hosts_, [&](const auto& entry) { return isGone(entry.second->first); });
  std::erase_if(keys_, [&](const auto& entry) { return isGone(entry.first); });
}

// An IPv6 link has a prefix of 64 bits (RFC 4291 section 2.5.4).
Address HandshakeLimiter::hostOf(const Address& address) {
  return address.isV6() ? prefixOf(address, 8) : address;
}

void HandshakeLimiter::welcome(const Address& address, const Pin& key) {
  known_.add(hostOf(address), known_.key(key));
}

bool HandshakeLimiter::mayAsk(const Address& address, Time now) {
  KnownHosts::Key* known = known_.keyOf(hostOf(address));
  if (known && take({{known->second.answers, kKeyAnswers}, {knownAnswers_, kAnswers}}, now))
    return true;
  Network& network = networkAt(networkOf(address));
  return take({{network.answers, kNetworkAnswers}, {answers_, kAnswers}}, now);
}

std::optional<HandshakeOrigin> HandshakeLimiter::mayBegin(const Address& address, Time now) {
  Address host = hostOf(address), prefix = networkOf(address);
  KnownHosts::Key* known = known_.keyOf(host);
  if (known && take({{known->second.begun, kKeyBegins}, {knownBegins_, kKnownBegins}}, now))
    return HandshakeOrigin{known->first};
  bool may = take({{bucketOf(host), kHostBegins},
                   {networkAt(prefix).begins, kNetworkBegins},
                   {begins_, kBegins}},
                  now);
  return may ? std::optional(HandshakeOrigin{prefix, host}) : std::nullopt;
}

bool HandshakeLimiter::mayFinish(const HandshakeOrigin& origin, const Address& address,
                                 const Pin& pin, Time now) {
  KnownHosts::Key& key = known_.key(pin);
  if (!key.second.finished.take(kKeyFinishes, now)) return false;
  if (const Pin* host = std::get_if<Pin>(&origin.group)) {
    if (KnownHosts::Key* other = known_.find(*host)) other->second.begun.giveBack(kKeyBegins);
    knownBegins_.giveBack(kKnownBegins);
  } else {
    bucketOf(origin.host).giveBack(kHostBegins);
    networkAt(std::get<Address>(origin.group)).begins.giveBack(kNetworkBegins);
    begins_.giveBack(kBegins);
  }
  known_.add(hostOf(address), key);
  return true;
}

size_t HandshakeLimiter::hashOf(const Address& address) const {
  uint64_t hash = key_;
  for (size_t i = 0; i < address.bytes.size(); i += 8)
    hash = Random(hash ^ load64(&address.bytes[i])).next();
  return hash;
}

}  // namespace braid
