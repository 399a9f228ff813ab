#include <algorithm>
#include <utility>

#include "simnet/world.h"

namespace braid::sim {

Path::Path(std::string name, PathEnd initiator, PathEnd responder, LinkOptions up, LinkOptions down,
           uint64_t seed, Time now)
    : name_(std::move(name)),
      near_(initiator),
      far_(responder),
      outside_(initiator.endpoint),
      up_(std::move(up), seed, now),
      down_(std::move(down), seed ^ 0x5eed, now) {}

void Path::change(DatagramLink& link, const std::function<void(LinkOptions&)>& f, Time now) {
  LinkOptions options = link.options();
  f(options);
  link.setOptions(std::move(options), now);
}

void Path::change(const std::function<void(LinkOptions&)>& f, Time now) {
  change(up_, f, now);
  change(down_, f, now);
}

void Path::enableNat(Duration idle, Time now) {
  nat_ = true;
  natIdle_ = idle;
  natUsed_ = now;
  rebind(true);
}

void Path::rebind(bool newAddress) {
  nat_ = true;
  formerOutside_.push_back(outside_);
  outside_.port = static_cast<uint16_t>(20000 + formerOutside_.size());
  // The NAT's outside addresses are .2, .3, ... in the path's own subnet.
  if (newAddress) ++outside_.address.bytes[outside_.address.isV4() ? 3 : 15];
}

bool Path::isOutside(const Endpoint& e) const {
  return e == outside_ ||
         std::find(formerOutside_.begin(), formerOutside_.end(), e) != formerOutside_.end();
}

}  // namespace braid::sim
