#include "tunnel/link_headers.h"

#include <algorithm>

namespace braid {

size_t LinkHeaders::setOf(const Address& local, const Address& remote) const {
  FlowKey pair;
  pair.family = local.family;
  pair.src = local.bytes;
  pair.dst = remote.bytes;
  return hash_(pair) % kSets;
}

void LinkHeaders::note(const Address& local, const Address& remote, const Header& header) {
  Set& set = sets_[setOf(local, remote)];
  auto found = std::find_if(set.begin(), set.end() - 1,
                            [&](const Entry& e) { return e.local == local && e.remote == remote; });
  std::rotate(set.begin(), found, found + 1);
  set.front() = {local, remote, header};
}

std::optional<LinkHeaders::Header> LinkHeaders::toRemote(const Address& local, const Address& remote) const {
  for (const Entry& e : sets_[setOf(local, remote)]) {
    if (e.local == local && e.remote == remote) return e.header;
  }
  return std::nullopt;
}

std::optional<LinkHeaders::Header> LinkHeaders::toLocal(const Address& local, const Address& remote) const {
  std::optional<Header> header = toRemote(local, remote);
  constexpr size_t kMac = std::tuple_size_v<MacAddress>;
  if (header) std::swap_ranges(header->begin(), header->begin() + kMac, header->begin() + kMac);
  return header;
}

}  // namespace braid
