#include "inet/flow_key.h"

#include <bit>

#include "base/bytes.h"
#include "inet/ip.h"

namespace braid {

namespace {

/// SipHash-1-3 over whole 64-bit words: one round per word, three at the end.
class SipHash {
 public:
  SipHash(uint64_t k0, uint64_t k1)
      : v0_(k0 ^ 0x736f6d6570736575),
        v1_(k1 ^ 0x646f72616e646f6d),
        v2_(k0 ^ 0x6c7967656e657261),
        v3_(k1 ^ 0x7465646279746573) {}

  void add(uint64_t word) {
    v3_ ^= word;
    round();
    v0_ ^= word;
    bytes_ += 8;
  }
  uint64_t finish() {
    add(bytes_ << 56);
    v2_ ^= 0xff;
    for (int i = 0; i < 3; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }
  uint64_t v0_, v1_, v2_, v3_;
  uint64_t bytes_ = 0;
};

std::string protocolName(uint8_t protocol) {
  switch (protocol) {
    case ip::kIcmp:
      return "icmp";
    case ip::kTcp:
      return "tcp";
    case ip::kUdp:
      return "udp";
    case ip::kDccp:
      return "dccp";
    case ip::kIcmpV6:
      return "icmp6";
    case ip::kSctp:
      return "sctp";
    case ip::kUdpLite:
      return "udplite";
    default:
      return std::to_string(protocol);
  }
}

}  // namespace

size_t FlowKeyHash::operator()(const FlowKey& key) const {
  SipHash hash(k0_, k1_);
  hash.add(uint64_t{static_cast<uint8_t>(key.family)} << 48 | uint64_t{key.protocol} << 32 |
           uint64_t{key.sport} << 16 | key.dport);
  if (key.family == Address::Family::kV4) {
    hash.add(uint64_t{load32(key.src.data())} << 32 | load32(key.dst.data()));
  } else {
    hash.add(load64(key.src.data()));
    hash.add(load64(key.src.data() + 8));
    hash.add(load64(key.dst.data()));
    hash.add(load64(key.dst.data() + 8));
  }
  return hash.finish();
}

std::string FlowKey::toString() const {
  std::string name = protocolName(protocol) + " ";
  if (sport == 0 && dport == 0)
    return name + source().toString() + " > " + destination().toString();
  return name + Endpoint{source(), sport}.toString() + " > " +
         Endpoint{destination(), dport}.toString();
}

}  // namespace braid
