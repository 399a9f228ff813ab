#include "tunnel/peer/load_test.h"

#include <algorithm>

#include "tunnel/peer/peer.h"
#include "tunnel/peer/peer_set.h"

namespace braid {

Peer* PeerLoadTest::named(const std::string& name) const {
  Peer* found = nullptr;
  peers_.forEach([&](Peer& peer) {
    if (peer.options().name == name) found = &peer;
  });
  return found;
}

// nullptr: no peer has had a test, or its session has ended.
Session* PeerLoadTest::session() const {
  Peer* peer = named(last_.peer);
  return peer ? peer->session() : nullptr;
}

std::string PeerLoadTest::start(const std::string& name, const MeasureRequest& request, Time now) {
  if (status(now).running) return "a test runs already, of " + last_.peer + "; wait for its end";
  Peer* peer = named(name);
  if (!peer) return "there is no peer " + name;
  Session* session = peer->isUp() ? peer->session() : nullptr;
  if (!session) return name + " is not up: nothing can be measured";
  if (!session->loadTest().begin(request, now)) {
    return request.path.empty() ? "no path to " + name + " is usable and may be measured unasked"
                                : "there is no usable path " + request.path + " to " + name;
  }
  last_ = {.peer = name, .path = request.path};
  peers_.wake(*peer);
  return {};
}

void PeerLoadTest::stop() {
  if (Session* measured = session()) measured->loadTest().end();
}

MeasureStatus PeerLoadTest::status(Time now) const {
  MeasureStatus out = last_;
  Session* measured = session();
  if (!measured) return out;
  const LoadTest& test = measured->loadTest();
  out.running = test.isRunning();
  out.sentBytes = test.sent();
  if (out.running) out.left = std::max(test.endsAt() - now, Duration{});
  return out;
}

PeerStatus PeerLoadTest::peer(Time now) const {
  const Peer* measured = named(last_.peer);
  return measured ? measured->status(now, 0) : PeerStatus{};
}

}  // namespace braid
