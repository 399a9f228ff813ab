#include "scheduler/rate/controller.h"

#include "scheduler/rate/amp.h"
#include "scheduler/rate/auto_controller.h"
#include "scheduler/rate/cubic.h"
#include "scheduler/rate/dctcp.h"
#include "scheduler/rate/newreno.h"
#include "scheduler/rate/rivals/bbr.h"
#include "scheduler/rate/rivals/coupled.h"
#include "scheduler/rate/wan.h"

namespace braid {

std::unique_ptr<Controller> makeController(std::string_view name, const ControllerOptions& o,
                                           ControllerGroup* group) {
  if (name == "auto") return std::make_unique<AutoController>(o, group);
  if (name == "newreno") return std::make_unique<NewReno>(o.datagram, o.initialWindow);
  if (name == "bbr") return std::make_unique<Bbr>(o.datagram, o.initialWindow);
  if (name == "cubic") return std::make_unique<Cubic>(o.datagram, o.initialWindow);
  if (name == "dctcp") return std::make_unique<Dctcp>(o.datagram, o.initialWindow);
  if (name == "lia") return std::make_unique<Lia>(o.datagram, o.initialWindow, group, o.liaBeta);
  if (name == "dcm") return std::make_unique<Dcm>(o.datagram, o.initialWindow, group);
  if (name == "xmp") return std::make_unique<Xmp>(o.datagram, o.initialWindow, group);
  if (name == "amp") return std::make_unique<Amp>(o.datagram, o.initialWindow, o.amp, group);
  if (name == "wan") return std::make_unique<CoupledWan>(o.datagram, o.initialWindow, group);
  return nullptr;
}

std::unique_ptr<Controller> makeController(std::string_view name, uint64_t datagram,
                                           uint64_t initialWindow) {
  return makeController(name, ControllerOptions{datagram, initialWindow, {}});
}

}  // namespace braid
