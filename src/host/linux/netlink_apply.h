#pragma once

#include <libmnl/libmnl.h>

#include "host/network_table.h"

namespace braid {

/// Takes an RTM_{NEW,DEL}{LINK,ADDR,ROUTE}, RTM_DELRULE or RTM_NEWNETCONF message into the table; others and malformed ones
/// change nothing.
void applyNetlink(const nlmsghdr& message, NetworkTable& table);

}  // namespace braid
