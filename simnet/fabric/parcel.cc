#include "simnet/fabric/parcel.h"

#include "base/bytes.h"

namespace braid::sim {

uint64_t flowHash(const Endpoint& src, const Endpoint& dst) {
  uint64_t h = 0x9e3779b97f4a7c15;
  for (const Endpoint* e : {&src, &dst}) {
    h = (h ^ load64(e->address.bytes.data())) * 0xff51afd7ed558ccd;
    h = (h ^ (h >> 32) ^ e->port) * 0xc4ceb9fe1a85ec53;
  }
  return h ^ (h >> 29);
}

}  // namespace braid::sim
