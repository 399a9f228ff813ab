#pragma once

// Rations of the work that others cause before they have proven who they are.
//
// Whose handshake it is shows only at its end. Until then it counts for where it comes from:
//
//     a known host      for the key that came from there before, and for all known hosts together
//     any other host    for the host, for its network, and for all strangers together
//
// So a peer with many addresses has one ration, a stranger with many addresses leaves half of the
// strangers' ration to other networks, and strangers take nothing from known hosts. A known host
// whose key has used its ration up is treated as a stranger's. At the end a handshake counts for
// the key that has proven itself, wherever it came from, and what it took from the rations above is
// given back. So hundreds of peers may come at once, and few handshakes that lead to nothing.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "inet/addresses.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// The hosts from which keys have come, with the rations of these keys. A key has a bounded number
/// of hosts and makes room for a new one among its own. So no key takes another one's hosts away,
/// and the number of configured peers bounds the memory.
class KnownHosts {
 public:
  /// Maximum number of hosts of one key; the one from which it came least recently is forgotten.
  /// Chosen: twice the routes of a peer that a restarted gateway knows.
  static constexpr size_t kEach = 16;
  struct Rations {
    TokenBucket answers;   ///< cookie requests to its hosts
    TokenBucket begun;     ///< handshakes that began at its hosts
    TokenBucket finished;  ///< handshakes that it has finished, from any host
    std::deque<Address> hosts{};
  };
  using Key = std::pair<const Pin, Rations>;

  /// A key that has proven itself.
  Key& key(const Pin& pin) { return *keys_.try_emplace(pin).first; }
  /// nullptr: the key is not known.
  Key* find(const Pin& pin) {
    auto found = keys_.find(pin);
    return found == keys_.end() ? nullptr : &*found;
  }
  /// The key has come from this host. A host of several keys counts for the first of them, so that
  /// no other one can have it forgotten.
  void add(const Address& host, Key& key);
  /// nullptr: the host is not known.
  Key* keyOf(const Address& host) const;
  /// Forgets all other keys, and their hosts.
  void keep(const std::vector<Pin>& pins);

 private:
  std::map<Pin, Rations> keys_;
  std::map<Address, Key*> hosts_;
};

/// For whom a handshake counts until it is done.
struct HandshakeOrigin {
  /// A stranger's network, or the key of a known host.
  std::variant<Address, Pin> group;
  Address host{};  ///< a stranger's; none for a key, whose hosts count together

  bool isKnown() const { return std::holds_alternative<Pin>(group); }
  auto operator<=>(const HandshakeOrigin&) const = default;
};

/// Limits cookie requests and handshakes, as explained above. A host is an IPv4 address, or all
/// IPv6 addresses of one link (a /64). A network is an IPv4 /16 or an IPv6 /32: about what one
/// provider gives to its customers.
class HandshakeLimiter {
 public:
  /// Cookie requests to all strangers together, and to all known hosts together. Chosen: each costs
  /// about 10 us.
  static constexpr RateLimit kAnswers{512, 250us};
  /// Cookie requests to the strangers of one network. Chosen: half of the above.
  static constexpr RateLimit kNetworkAnswers{256, 500us};
  /// Cookie requests to the hosts of one key. Chosen: an initiator asks once for each of its
  /// routes and repeats that some times in a second.
  static constexpr RateLimit kKeyAnswers{64, 4ms};
  /// Handshakes that all strangers together may begin without finishing them. Chosen: one whose
  /// second flight has a false signature takes 0.7 to 1.3 ms, so these take an eighth of a
  /// processor at most.
  static constexpr RateLimit kBegins{256, 10ms};
  /// Handshakes that the strangers of one network may begin. Chosen: half of the above.
  static constexpr RateLimit kNetworkBegins{128, 20ms};
  /// Handshakes that one host may begin. Chosen: an honest initiator begins a few at once and then
  /// one every 0.5 s.
  static constexpr RateLimit kHostBegins{16, 250ms};
  /// Handshakes that all known hosts together may begin. Chosen: hundreds of peers may come back at
  /// once.
  static constexpr RateLimit kKnownBegins{1024, 1ms};
  /// Handshakes that may begin at the hosts of one key. Chosen: many gateways may be behind one
  /// address of a carrier, which counts for the first of them.
  static constexpr RateLimit kKeyBegins{256, 20ms};
  /// Handshakes that one key may finish. Chosen: an initiator finishes one for each of its routes
  /// when it starts.
  static constexpr RateLimit kKeyFinishes{64, 50ms};

  /// `key` decides which hosts share a token bucket; it should be unpredictable.
  explicit HandshakeLimiter(uint64_t key) : key_(key) {}

  /// The host of an address: the address itself, or its IPv6 link's prefix.
  static Address hostOf(const Address& address);

  /// The key came from this address before this gateway started.
  void welcome(const Address& address, const Pin& key);
  /// Forgets the hosts of all other keys.
  void keepKeys(const std::vector<Pin>& pins) { known_.keep(pins); }
  /// Whether a hello from this address may be answered by a cookie request.
  bool mayAsk(const Address& address, Time now);
  /// For whom a handshake from this address counts, which has shown its cookie; nullopt: it may not
  /// begin.
  std::optional<HandshakeOrigin> mayBegin(const Address& address, Time now);
  /// The key has proven itself from this address, by a handshake that counted for `origin`. False:
  /// it has finished too many handshakes, and this one must not count.
  bool mayFinish(const HandshakeOrigin& origin, const Address& address, const Pin& key, Time now);

 private:
  struct Network {
    TokenBucket answers, begins;
  };
  static constexpr size_t kHostBuckets = 4096, kNetworkBuckets = 1024;
  size_t hashOf(const Address& address) const;
  TokenBucket& bucketOf(const Address& host) { return hosts_[hashOf(host) % kHostBuckets]; }
  Network& networkAt(const Address& prefix) { return networks_[hashOf(prefix) % kNetworkBuckets]; }

  uint64_t key_;
  TokenBucket answers_, begins_, knownAnswers_, knownBegins_;
  std::array<TokenBucket, kHostBuckets> hosts_;
  std::array<Network, kNetworkBuckets> networks_;
  KnownHosts known_;
};

}  // namespace braid
