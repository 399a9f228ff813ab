#include "scheduler/controller.h"

#include "scheduler/bbr.h"
#include "scheduler/newreno.h"

namespace braid {

std::unique_ptr<Controller> makeController(std::string_view name, uint64_t datagram) {
  if (name == "newreno") return std::make_unique<NewReno>(datagram);
  if (name == "bbr") return std::make_unique<Bbr>(datagram);
  return nullptr;
}

}  // namespace braid
