#include "gateway/uplinks/listeners.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "gateway/network/network_reconciler.h"
#include "host/system.h"

namespace braid {

void Listeners::close(SocketId id) {
  sockets_.close(id);
  ids_.release(id);
}

Listeners::Listener* Listeners::find(const Endpoint& endpoint) {
  auto at = std::find_if(open_.begin(), open_.end(),
                         [&](const Listener& l) { return l.endpoint == endpoint; });
  return at == open_.end() ? nullptr : &*at;
}

// At boot the daemon may be earlier than a DHCP client, or than duplicate address detection. True:
// no interface has the address yet.
bool Listeners::openOrAwait(SocketId id, SocketOptions options) {
  try {
    sockets_.open(id, options);
    return false;
  } catch (const SystemError& error) {
    if (error.code() != EADDRNOTAVAIL) throw;
  }
  options.mayBeAbsent = true;
  sockets_.open(id, options);
  return true;
}

void Listeners::open(const std::vector<Endpoint>& endpoints) {
  std::vector<Listener> added;
  std::vector<std::string> leftOut, awaited;
  std::optional<SystemError> refusal;
  Transaction all;
  for (const Endpoint& e : endpoints) {
    if (find(e)) continue;
    SocketId id = ids_.take();
    SocketOptions options;
    options.local = e.address;
    options.port = e.port;
    auto open = [&] {
      try {
        if (openOrAwait(id, options)) awaited.push_back(e.toString());
      } catch (...) {
        ids_.release(id);
        throw;
      }
    };
    try {
      all.step(open, [this, id] { close(id); });
      added.push_back({e, id});
    } catch (const SystemError& error) {
      if (error.code() != EAFNOSUPPORT) throw;
      refusal = error;
      leftOut.push_back(e.toString());
    }
  }
  if (refusal && leftOut.size() == endpoints.size()) throw *refusal;
  for (const std::string& e : leftOut)
    spdlog::warn("nobody can come to {}: {}", e, refusal->what());
  for (const std::string& e : awaited)
    spdlog::warn("no interface has the address of {} yet: nobody can come there until one has", e);
  all.commit();
  open_.insert(open_.end(), added.begin(), added.end());
}

void Listeners::keepOnly(const std::vector<Endpoint>& endpoints) {
  std::vector<Listener> kept;
  for (const Endpoint& e : endpoints) {
    if (const Listener* l = find(e)) kept.push_back(*l);
  }
  for (const Listener& l : open_) {
    bool stays =
        std::any_of(kept.begin(), kept.end(), [&](const Listener& k) { return k.id == l.id; });
    if (!stays) close(l.id);
  }
  open_ = std::move(kept);
}

std::optional<Endpoint> Listeners::endpointOf(SocketId id) const {
  auto at = std::find_if(open_.begin(), open_.end(), [&](const Listener& l) { return l.id == id; });
  return at == open_.end() ? std::nullopt : std::optional(at->endpoint);
}

std::optional<SocketId> Listeners::idOf(const Endpoint& endpoint) const {
  auto at = std::find_if(open_.begin(), open_.end(),
                         [&](const Listener& l) { return l.endpoint == endpoint; });
  return at == open_.end() ? std::nullopt : std::optional(at->id);
}

std::vector<std::string> Listeners::names() const {
  std::vector<std::string> out;
  for (const Listener& l : open_) out.push_back(l.endpoint.toString());
  return out;
}

}  // namespace braid
