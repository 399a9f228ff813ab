#include "host/linux/host_slot.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace braid {

HostSlot::HostSlot(unsigned count) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  for (; socket_ && number_ + 1 < count; ++number_) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = "braid-slot-" + std::to_string(number_);
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // after a zero: no file
    auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0) return;
    if (errno != EADDRINUSE) return;
  }
}

}  // namespace braid
