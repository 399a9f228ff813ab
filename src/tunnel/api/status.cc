#include "tunnel/api/status.h"

namespace braid {

bool UplinkMeter::add(uint64_t bytes, Time now) {
  if (second_ == Time::min() || now - second_ >= 1s) {
    lastSecond_ = second_ != Time::min() && now - second_ < 2s ? thisSecond_ : 0;
    thisSecond_ = 0;
    second_ = now;
  }
  thisSecond_ += bytes;
  reading_.used += bytes;
  if (reading_.closed || !isFull()) return false;
  return reading_.closed = true;
}

void UplinkMeter::reset(uint64_t used) {
  reading_.used = used;
  reading_.closed = isFull();
}

void UplinkMeter::setCap(uint64_t cap) {
  if (cap == reading_.cap) return;
  reading_.cap = cap;
  reading_.closed = isFull();
}

}  // namespace braid
