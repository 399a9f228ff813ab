#include "gateway/control/history.h"

#include <algorithm>
#include <map>
#include <utility>

namespace braid {

namespace {

// An entry that has been silent for an hour may be replaced.
constexpr int64_t kForgotten =
    std::chrono::duration_cast<std::chrono::seconds>(History::kStep).count() *
    static_cast<int64_t>(History::kSteps);

// How many events are searched for an equal one. The handshakes with a peer that is away fail again
// and again on the same few paths.
constexpr size_t kLookBack = 32;

// Orders the states of subflows, from the best to the worst.
int rankOf(const std::string& state) {
  constexpr const char* kStates[] = {"active", "validating", "suspect", "failed", "closed"};
  return static_cast<int>(std::find(std::begin(kStates), std::end(kStates), state) -
                          std::begin(kStates));
}

// The sums of the counters of each path's subflows.
std::map<std::string, PathStep> totalsOf(const PeerStatus& peer) {
  std::map<std::string, PathStep> totals;
  for (const SubflowStatus& s : peer.subflows) {
    PathStep& total = totals[s.path];
    addCounters<SendCounts>(total, s);
    addCounters<ReceiveCounts>(total, s);
    addCounters<ProtectionCounts>(total, s);
    bool better = total.state.empty() || rankOf(s.state) < rankOf(total.state) ||
                  (s.state == total.state && s.srtt < total.srtt);
    if (!better) continue;
    total.state = s.state;
    total.srtt = s.srtt;
    total.queueDelay = s.queueDelay;
  }
  return totals;
}

// A counter that decreased belongs to another session or subflow, which began at 0.
template <typename Step>
Step difference(Step now, const Step& before) {
  bool restarted = false;
  Step probe = now;
  combineCounters(probe, before, [&](auto& a, const auto& b) { restarted |= a < b; });
  if (!restarted) subtractCounters(now, before);
  return now;
}

template <typename Step>
void keep(Ring<Step>& steps, Step step) {
  if (steps.size() == History::kSteps) steps.popFront();
  steps.pushBack(std::move(step));
}

uint64_t bytesOf(const PathStep& step) {
  return step.sentBytes + step.receivedBytes;
}

template <typename T>
T* placeFor(std::vector<T>& all, size_t most, int64_t wall) {
  if (all.size() < most) return &all.emplace_back();
  auto gone = std::find_if(all.begin(), all.end(),
                           [&](const T& t) { return t.total.until < wall - kForgotten; });
  if (gone == all.end()) return nullptr;
  *gone = T{};
  return &*gone;
}

}  // namespace

const char* eventName(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kPeerUp:
      return "peer_up";
    case Event::Kind::kPeerDown:
      return "peer_down";
    case Event::Kind::kHandshakeFailed:
      return "handshake_failed";
    case Event::Kind::kSubflowUp:
      return "path_up";
    case Event::Kind::kSubflowSuspect:
      return "path_silent";
    case Event::Kind::kSubflowFailed:
      return "path_gone";
    case Event::Kind::kSubflowRole:
      return "path_duty";
    case Event::Kind::kCapReached:
      return "cap_reached";
    case Event::Kind::kNewPeriod:
      return "new_period";
    case Event::Kind::kAddressChanged:
      return "address_changed";
    case Event::Kind::kForgedAck:
      return "forged_ack";
    case Event::Kind::kRekeyed:
      return "rekeyed";
    case Event::Kind::kInnerMtu:
      return "inner_mtu";
    case Event::Kind::kPeerInUse:
      return "peer_in_use";
    case Event::Kind::kPeerReplaced:
      return "peer_replaced";
    case Event::Kind::kDirect:
      return "direct";
    case Event::Kind::kRouted:
      return "routed";
  }
  return "other";
}

const History::Path* History::path(std::string_view peer, std::string_view name) const {
  auto found = std::find_if(paths_.begin(), paths_.end(),
                            [&](const Path& p) { return p.peer == peer && p.name == name; });
  return found == paths_.end() ? nullptr : &*found;
}

const History::Peer* History::peer(std::string_view name) const {
  auto found =
      std::find_if(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.name == name; });
  return found == peers_.end() ? nullptr : &*found;
}

History::Path* History::takePath(const std::string& peer, const std::string& name, int64_t wall) {
  if (const Path* known = path(peer, name)) return const_cast<Path*>(known);
  Path* fresh = placeFor(paths_, kMostPaths, wall);
  if (!fresh) return nullptr;
  fresh->peer = peer;
  fresh->name = name;
  return fresh;
}

History::Peer* History::takePeer(const std::string& name, int64_t wall) {
  if (const Peer* known = peer(name)) return const_cast<Peer*>(known);
  Peer* fresh = placeFor(peers_, kMostPeers, wall);
  if (fresh) fresh->name = name;
  return fresh;
}

void History::add(const PeerStatus& status, int64_t wall) {
  if (Peer* peer = takePeer(status.name, wall)) {
    PeerStep total;
    static_cast<CarriedCounts&>(total) = static_cast<const CarriedCounts&>(status);
    static_cast<OutboundCounts&>(total) = static_cast<const OutboundCounts&>(status);
    static_cast<InboundCounts&>(total) = static_cast<const InboundCounts&>(status);
    total.restored = status.restored;
    total.until = wall;
    total.up = status.up;
    keep(peer->steps, difference(total, peer->total));
    peer->total = total;
  } else {
    ++untold_;
  }
  for (auto& [name, total] : totalsOf(status)) {
    Path* path = takePath(status.name, name, wall);
    if (!path) {
      ++untold_;
      continue;
    }
    total.until = wall;
    if (path->steps.size() == kSteps) path->bytes -= bytesOf(path->steps[0]);
    PathStep step = difference(total, path->total);
    path->bytes += bytesOf(step);
    keep(path->steps, std::move(step));
    path->total = std::move(total);
  }
}

void History::add(const Event& event, double wall) {
  if (event.kind == Event::Kind::kRekeyed) return;
  PastEvent past{wall, eventName(event.kind), event.peer, event.path, event.text, wall};
  if (event.kind == Event::Kind::kHandshakeFailed && !peer(event.peer)) {
    past.count = stranger_.kind.empty() ? 1 : stranger_.count + 1;
    stranger_ = std::move(past);
    return;
  }
  // Equal events of this kind only are counted together: a path that fails and returns is recorded
  // each time.
  bool repeats = event.kind == Event::Kind::kHandshakeFailed;
  for (size_t i = events_.size(), left = repeats ? kLookBack : 0; i > 0 && left > 0; --i, --left) {
    PastEvent& e = events_[i - 1];
    if (e.kind != past.kind || e.peer != past.peer || e.text != past.text) continue;
    e.last = wall;
    ++e.count;
    return;
  }
  push(std::move(past));
}

void History::add(const char* kind, const std::string& path, const std::string& text, double wall) {
  push({wall, kind, {}, path, text, wall});
}

void History::add(const RefusedCounts& now) {
  if (refused_.size() == kRecent) refused_.popFront();
  refused_.pushBack(RefusedCounts(now));
}

void History::beginAgain(const RefusedCounts& now) {
  refused_ = {};
  add(now);
}

RefusedCounts History::formerlyRefused() const {
  return refused_.empty() ? RefusedCounts{} : refused_.front();
}

void History::push(PastEvent event) {
  if (events_.size() == kMostEvents) events_.popFront();
  events_.pushBack(std::move(event));
}

}  // namespace braid
