#include "simnet/tcp/congestion.h"

#include <stdexcept>

#include "simnet/tcp/cubic.h"
#include "simnet/tcp/dctcp.h"
#include "simnet/tcp/newreno.h"

namespace braid::sim::tcp {

std::unique_ptr<Congestion> makeCongestion(Control control, uint32_t mss) {
  switch (control) {
    case Control::kNewReno:
      return std::make_unique<NewReno>(mss);
    case Control::kCubic:
      return std::make_unique<CubicWindow>(mss);
    case Control::kCubic8312:
      return std::make_unique<CubicWindow>(mss, true);
    case Control::kDctcp:
      return std::make_unique<DctcpWindow>(mss);
  }
  throw std::invalid_argument("no such congestion control");
}

}  // namespace braid::sim::tcp
