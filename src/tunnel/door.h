#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <map>

#include "base/ration.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "tunnel/wire/handshake_seal.h"

namespace braid {

/// Handshake datagrams that have come, by their nonces: who repeats what he has overheard is not answered. Two Bloom
/// filters that take turns; one honest datagram in some thousand is taken for a repeated one, and comes again with a
/// new nonce.
class SeenNonces {
 public:
  /// Nonces of a generation. Ours.
  static constexpr size_t kGeneration = 8192;

  /// True when the nonce was shown before, and not too many others since.
  bool seen(const HandshakeNonce& nonce) const;
  void add(const HandshakeNonce& nonce);

 private:
  static constexpr size_t kBits = size_t{1} << 18;
  using Filter = std::bitset<kBits>;
  static std::array<size_t, 4> placesOf(const HandshakeNonce& nonce);

  Filter present_, before_;
  size_t added_ = 0;
};

/// How much of our work a host may have before it has proven who it is. Hosts from which a peer has come before are
/// friends, each with a ration of its own, so that strangers cannot lock them out.
///
/// A host is an IPv4 address, or the IPv6 addresses of one link.
class Door {
 public:
  /// Cookie requests, to all strangers. Ours: each costs some 10 us.
  static constexpr Allowance kAnswers{512, 250us};
  /// Handshakes of one host that begin. Ours: an honest initiator begins a few at once and then one in 0.5 s.
  static constexpr Allowance kHostBegins{16, 250ms};
  /// Handshakes of a friend's host that begin. Ours: many edges may be behind one address of a carrier.
  static constexpr Allowance kFriendBegins{256, 20ms};
  /// Handshakes of all strangers that begin. Ours: each costs some 300 us.
  static constexpr Allowance kBegins{256, 2ms};
  /// Friends that are remembered; the one that has not come for longest goes. Ours.
  static constexpr size_t kMaxFriends = 4096;

  /// `key` should be unpredictable: it decides which hosts share a bucket.
  explicit Door(uint64_t key) : key_(key) {}

  /// The host of an address: itself, or its link's prefix.
  static Address hostOf(const Address& address);

  bool isFriend(const Address& address) const { return friends_.contains(hostOf(address)); }
  /// A peer has proven itself from there.
  void addFriend(const Address& address);
  /// Whether the host's hello is answered by a cookie request.
  bool mayAsk(const Address& address, Time now);
  /// Whether a handshake of the host, which has shown its cookie, may begin.
  bool mayBegin(const Address& address, Time now);

 private:
  static constexpr size_t kBuckets = 4096;
  Ration& bucketOf(const Address& host);

  uint64_t key_;
  Ration answers_, begins_;
  std::array<Ration, kBuckets> hosts_;
  std::map<Address, Ration> friends_;
  std::deque<Address> order_;  ///< of friends_, the newest last
};

}  // namespace braid
