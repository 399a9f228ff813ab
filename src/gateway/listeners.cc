#include "gateway/listeners.h"

#include <algorithm>
#include <utility>

#include "gateway/transaction.h"

namespace braid {

void Listeners::close(SocketId id) {
  sockets_.close(id);
  ids_.release(id);
}

void Listeners::set(const std::vector<Endpoint>& endpoints) {
  std::vector<Listener> next;
  Transaction all;
  for (const Endpoint& e : endpoints) {
    auto open = std::find_if(open_.begin(), open_.end(), [&](const Listener& l) { return l.endpoint == e; });
    if (open != open_.end()) {
      next.push_back(*open);
      continue;
    }
    SocketId id = ids_.take();
    SocketOptions options;
    options.local = e.address;
    options.port = e.port;
    all.step([&] { sockets_.open(id, options); }, [this, id] { close(id); });
    next.push_back({e, id});
  }
  all.commit();
  for (const Listener& l : open_) {
    bool kept = std::any_of(next.begin(), next.end(), [&](const Listener& n) { return n.id == l.id; });
    if (!kept) close(l.id);
  }
  open_ = std::move(next);
}

std::vector<std::string> Listeners::names() const {
  std::vector<std::string> out;
  for (const Listener& l : open_) out.push_back(l.endpoint.toString());
  return out;
}

}  // namespace braid
