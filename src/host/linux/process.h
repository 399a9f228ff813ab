#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace braid {

/// Tells the service manager about the daemon's state (sd_notify(3)). Without a service manager
/// ($NOTIFY_SOCKET) these calls do nothing.
namespace notify {

/// Start is complete; `status` is one line for `systemctl status`.
void ready(const std::string& status);
/// A reload began; ready() ends it. Sends MONOTONIC_USEC, as Type=notify-reload requires.
void reloading();
void stopping();
void status(const std::string& line);
void watchdog();
/// The interval at which to call watchdog(): half of what the manager allows; zero when the
/// watchdog is off.
Duration watchdogInterval();

}  // namespace notify

/// Changes to this user with its group and supplementary groups, and keeps the capabilities that
/// dropPrivileges() keeps. For a daemon that is not started as its user by a service manager. Call
/// before there are threads or open files. Throws SystemError with a remedy.
void becomeUser(const std::string& name);

/// A file or folder, and what a user is to do with it: R_OK, W_OK, X_OK of access(2).
struct NeededAccess {
  std::string path;
  int mode = 0;
};
/// Whether this process, which is root's, could go on as another user. Asks a child process that
/// becomes the user; a path that does not exist does not count. Returns what stands in the way;
/// empty: nothing. Throws SystemError when there is no pipe.
std::string obstacleAs(const std::string& user, const std::vector<NeededAccess>& needed);

/// Drops every capability that the running daemon does not need, from the bounding set as well. Of
/// those it has, it keeps CAP_NET_ADMIN (device, routes, buffers), CAP_NET_RAW (sockets bound to
/// interfaces) and CAP_NET_BIND_SERVICE (ports below 1024 on reload). No child process or executed
/// file can regain the others (no_new_privs). Capabilities are per thread: call before a second
/// thread starts. Throws SystemError.
void dropPrivileges();

/// Sets whether a crash may leave a core dump, and whether other processes of the same user may
/// inspect this one. Its memory holds keys.
void allowDumps(bool on);

/// From now on, freed large blocks return to the system at once. Without this, glibc raises its
/// mmap threshold when the first large block is freed (mallopt(3), dynamic mmap threshold), and
/// takes later large blocks from its heap. There a small block after the freed table of a peer
/// would keep all of the table's memory.
void returnLargeBlocks() noexcept;

/// A memory reserve for the case that the system has no memory left. Destructors of libraries
/// (nlohmann-json's) may allocate memory, and a failure there ends the process at once. So the
/// first allocation that fails gets the reserve. The daemon notices that it cannot get the reserve
/// again, and ends in an orderly way.
///
/// Allocates the reserve unless it is held, and makes operator new release it on failure. False:
/// there is no memory for it.
bool holdMemoryReserve() noexcept;
/// Frees the reserve for the next allocation of any thread. False: it was already used.
bool releaseMemoryReserve() noexcept;

/// Unmaps the pages of code and constants of the program and its libraries; the kernel maps them
/// again from its page cache when they are needed. Most of them are used only at start and in
/// handshakes, and when memory is short, the kernel first reclaims pages that no process has
/// mapped. A page that is needed again costs about a microsecond.
void returnProgramPages() noexcept;

}  // namespace braid
