#include "tunnel/door.h"

#include <algorithm>

#include "base/random.h"

namespace braid {

std::array<size_t, 4> SeenNonces::placesOf(const HandshakeNonce& nonce) {
  uint64_t first = load64(nonce.data()), last = load32(nonce.data() + 8);
  return {first % kBits, (first >> 18) % kBits, (first >> 36) % kBits, (last ^ first >> 54) % kBits};
}

bool SeenNonces::seen(const HandshakeNonce& nonce) const {
  std::array places = placesOf(nonce);
  auto isIn = [&](const Filter& filter) {
    return std::ranges::all_of(places, [&](size_t place) { return filter[place]; });
  };
  return isIn(present_) || isIn(before_);
}

void SeenNonces::add(const HandshakeNonce& nonce) {
  if (added_ == kGeneration) {
    before_ = present_;
    present_.reset();
    added_ = 0;
  }
  ++added_;
  for (size_t place : placesOf(nonce)) present_.set(place);
}

// RFC 4291 section 2.5.4: a link has 64 bits.
Address Door::hostOf(const Address& address) {
  Address host = address;
  if (host.isV6()) std::fill(host.bytes.begin() + 8, host.bytes.end(), uint8_t{0});
  return host;
}

void Door::addFriend(const Address& address) {
  Address host = hostOf(address);
  if (!friends_.try_emplace(host).second) std::erase(order_, host);
  order_.push_back(host);
  if (order_.size() <= kMaxFriends) return;
  friends_.erase(order_.front());
  order_.pop_front();
}

bool Door::mayAsk(const Address& address, Time now) {
  return isFriend(address) || answers_.take(kAnswers, now);
}

bool Door::mayBegin(const Address& address, Time now) {
  Address host = hostOf(address);
  if (auto known = friends_.find(host); known != friends_.end())
    return known->second.take(kFriendBegins, now);
  return bucketOf(host).take(kHostBegins, now) && begins_.take(kBegins, now);
}

Ration& Door::bucketOf(const Address& host) {
  uint64_t hash = key_;
  for (size_t i = 0; i < host.bytes.size(); i += 8) hash = Random(hash ^ load64(&host.bytes[i])).next();
  return hosts_[hash % kBuckets];
}

}  // namespace braid
