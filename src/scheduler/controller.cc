#include "scheduler/controller.h"

#include "scheduler/bbr.h"
#include "scheduler/newreno.h"

namespace braid {

std::unique_ptr<Controller> makeController(std::string_view name, uint64_t datagram, uint64_t initialWindow) {
  if (name == "newreno") return std::make_unique<NewReno>(datagram, initialWindow);
  if (name == "bbr") return std::make_unique<Bbr>(datagram, initialWindow);
  return nullptr;
}

}  // namespace braid
