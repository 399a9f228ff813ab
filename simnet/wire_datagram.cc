#include "simnet/wire_datagram.h"

#include <utility>

namespace braid::sim {

bool clearEcn(WireDatagram& d) {
  return std::exchange(d.ecn, Ecn::kNotEct) != Ecn::kNotEct;
}

bool markCe(WireDatagram& d) {
  if (d.ecn != Ecn::kEct0 && d.ecn != Ecn::kEct1) return false;
  d.ecn = Ecn::kCe;
  return true;
}

void corrupt(WireDatagram& d, Random& random) {
  if (d.bytes.empty()) return;
  uint64_t bit = random.below(d.bytes.size() * 8);
  d.bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
}

}  // namespace braid::sim
