#pragma once

#include <string>

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

/// Drops every capability that the running daemon does not need. Of those it has, it keeps
/// CAP_NET_ADMIN (device, routes, buffers), CAP_NET_RAW (sockets bound to interfaces) and
/// CAP_NET_BIND_SERVICE (ports below 1024 on reload). No child process or executed file can regain
/// the others (no_new_privs). Capabilities are per thread: call before a second thread starts.
/// Throws SystemError.
void dropPrivileges();

/// Sets whether a crash may leave a core dump, and whether other processes of the same user may
/// inspect this one. Its memory holds keys.
void allowDumps(bool on);

}  // namespace braid
