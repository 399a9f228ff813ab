#include "host/linux/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "host/system_error.h"

namespace braid {

void dropPrivileges() {
  constexpr uint32_t kKept = 1u << CAP_NET_ADMIN | 1u << CAP_NET_RAW | 1u << CAP_NET_BIND_SERVICE;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};  // 64 capabilities in two words; the kept ones are in the first
  if (::syscall(SYS_capget, &header, sets) < 0) {
    throw SystemError(errno, std::string("cannot read own capabilities: ") + std::strerror(errno));
  }
  sets[0] = {sets[0].permitted & kKept, sets[0].permitted & kKept, 0};
  sets[1] = {};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
      ::syscall(SYS_capset, &header, sets) < 0) {
    throw SystemError(errno, std::string("cannot drop capabilities: ") + std::strerror(errno));
  }
}

}  // namespace braid
