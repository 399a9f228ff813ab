#include "scheduler/rate/wan_look.h"

#include <algorithm>

namespace braid {

// What the path holds: by the window and the RTT, or what arrives when that has just fallen.
void WanLook::begin(double window, const WanPath& path, double least) {
  double rtt = toSeconds(path.base() + path.queue());
  double holds = std::min(window / rtt, path.arrived()) * toSeconds(path.base());
  window_ = std::max(kPart * holds, least);
  state_ = State::kLowered;
}

}  // namespace braid
