#include "tunnel/uplink_meter.h"

namespace braid {

bool UplinkMeter::add(uint64_t bytes, Time now) {
  if (second_ == Time::min() || now - second_ >= 1s) {
    lastSecond_ = second_ != Time::min() && now - second_ < 2s ? thisSecond_ : 0;
    thisSecond_ = 0;
    second_ = now;
  }
  thisSecond_ += bytes;
  used_ += bytes;
  if (closed_ || !isFull()) return false;
  return closed_ = true;
}

void UplinkMeter::reset(uint64_t used) {
  used_ = used;
  closed_ = isFull();
}

void UplinkMeter::setCap(uint64_t cap) {
  if (cap == cap_) return;
  cap_ = cap;
  closed_ = isFull();
}

}  // namespace braid
