#pragma once

#include <vector>

#include "host/stream_host.h"
#include "inet/addresses.h"

namespace braid {

/// Converts prefixes, which may contain each other, into disjoint ranges in ascending order. An
/// inner prefix gets ranges of its own, separate from the prefix around it. So every address of a
/// range has the same longest prefix.
std::vector<AddressRange> rangesOf(std::vector<Prefix> prefixes);

/// Merges adjacent ranges.
std::vector<AddressRange> joined(const std::vector<AddressRange>& ranges);

}  // namespace braid
