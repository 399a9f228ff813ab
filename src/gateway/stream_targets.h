#pragma once

#include <vector>

#include "host/stream_host.h"
#include "inet/prefix.h"

namespace braid {

/// Takes prefixes, some inside of others, apart into ranges that lie beside each other, in their order: those of an
/// inner prefix are its own, whatever is around it. Every address of a range has the same longest prefix.
std::vector<AddressRange> rangesOf(std::vector<Prefix> prefixes);

/// Makes one range of those that touch.
std::vector<AddressRange> joined(const std::vector<AddressRange>& ranges);

}  // namespace braid
