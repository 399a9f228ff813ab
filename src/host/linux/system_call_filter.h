#pragma once

#include <string>

namespace braid {

/// From now on all threads of this process, and those that they start, can make only the system
/// calls that the daemon makes after its start; a library may make others of the same kind. All
/// others fail with ENOSYS, as on a kernel that does not have them, so that a C library takes an
/// older call instead. No program can be executed, no process started, no memory made executable
/// that was written, and no socket opened except of IP, Unix and netlink. Cannot be undone. Needs
/// no_new_privs. Returns why this kernel or architecture cannot do that; empty: done. Throws
/// SystemError when it can, but refuses.
std::string restrictSystemCalls();

}  // namespace braid
