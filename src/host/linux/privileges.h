#pragma once

namespace braid {

/// Gives up every capability that the running daemon does not need: of those it has, CAP_NET_ADMIN (device,
/// routes, buffers), CAP_NET_RAW (sockets bound to interfaces) and CAP_NET_BIND_SERVICE (ports below 1024 on
/// reload) stay. No child or file can give more back (no_new_privs). Capabilities belong to threads: call
/// before the second one starts. Throws SystemError.
void dropPrivileges();

}  // namespace braid
