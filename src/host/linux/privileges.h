#pragma once

#include <string>

namespace braid {

/// Becomes this user, its group and its groups, and keeps the capabilities that dropPrivileges() keeps. For a
/// daemon that no service manager starts as its user; call first of all, before there are threads or files.
/// Throws SystemError with a remedy.
void becomeUser(const std::string& name);

/// Gives up every capability that the running daemon does not need: of those it has, CAP_NET_ADMIN (device,
/// routes, buffers), CAP_NET_RAW (sockets bound to interfaces) and CAP_NET_BIND_SERVICE (ports below 1024 on
/// reload) stay. No child or file can give more back (no_new_privs). Capabilities belong to threads: call
/// before the second one starts. Throws SystemError.
void dropPrivileges();

/// Whether a crash may leave a core dump, and other processes of the user may look into this one: its memory
/// holds keys.
void allowDumps(bool on);

}  // namespace braid
