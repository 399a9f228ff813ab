#include "gateway/proxy/tcp_proxy.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "inet/icmp.h"
#include "inet/inner_packet.h"

namespace braid {

namespace {

// The tag of a connection that has no stream yet.
constexpr uint64_t kNoTag = 0;

uint64_t tagOf(StreamHandle stream) {
  return uint64_t{stream.generation} << 32 | stream.place;
}
StreamHandle streamOf(uint64_t tag) {
  return {static_cast<uint32_t>(tag), static_cast<uint32_t>(tag >> 32)};
}

bool wantsPause(int error) {
  return error == ENOBUFS || error == ENOMEM;
}

// From this number of connections on, no new ones are taken over. The rest of the bound is for
// those that already wait to be accepted, and for connections to local hosts.
size_t almost(size_t most) {
  return most - most / 16;
}
// At this number of connections or fewer, new ones are taken over again. A tenth of the bound is
// free then, so that the rules do not change for each connection.
size_t enough(size_t most) {
  return most - std::max(most / 10, most / 16 + 1);
}

}  // namespace

TcpProxy::TcpProxy(Host& host, const NetworkMonitor& monitor, const std::string& device,
                   StreamApi& lanes, PacketPool& pool, LogLimiter& log)
    : clock_(host.clock()),
      monitor_(monitor),
      lanes_(lanes),
      device_(device),
      host_(host.openStreams(device, *this)),
      policy_(*host_, host.network(), lanes, log),
      accept_(host.network(), monitor, device, log),
      first_(*host_, lanes, policy_, pool, figures_) {}

TcpProxy::~TcpProxy() = default;

void TcpProxy::configure(const Config& config, const std::vector<std::string>& uplinks,
                         const HostNumbers& numbers, Time now) {
  most_ = bound_ = most(config);
  drainUntil_ = kNever;
  clientsSource_ = config.streams.source == StreamsConfig::Source::kClient;
  policy_.configure(config, device_, numbers);
  policy_.setUplinks(uplinks);
  accept_.configure(config);
  policy_.follow(monitor_.table());
  watchRoom(now);
  policy_.update(!full_, now);
  if (!policy_.waits()) first_.clear(now);
}

size_t TcpProxy::most(const Config& config) const {
  return std::min(config.streams.most, host_->most());
}

void TcpProxy::onChange(Time now) {
  policy_.follow(monitor_.table());
  policy_.update(!full_, now);
}

Time TcpProxy::deadline() const {
  return std::min(
      {policy_.deadline(), acceptAgain_, attempts_.empty() ? kNever : attempts_.front().until,
       waiting_.empty() ? kNever : waiting_.front().until, lookAgain_, first_.deadline()});
}

void TcpProxy::drain(Time until, Time now) {
  drainUntil_ = until;
  watchRoom(now);
}

void TcpProxy::stop() {
  policy_.stop();
  host_->wantAccept(false);
  pumps_.clear();
  waiting_.clear();
  first_.clear(clock_.now());
  lookAgain_ = kNever;
  open_ = 0;
}

StreamFigures TcpProxy::figures() const {
  StreamFigures out = figures_;
  out.on = true;
  out.taking = policy_.open();
  out.open = open_;
  out.connecting = first_.size();
  out.most = most_;
  out.lifts = policy_.lifts();
  return out;
}

bool TcpProxy::onPacket(Packet& packet, Time now) {
  if (onUnreachable(packet.view(), now)) return true;
  std::optional<StreamEnds> begun = first_.take(packet, hasRoom(), now);
  if (begun) noteRoom(begun->destination.address);
  return begun.has_value();
}

// ---- connections of local hosts

void TcpProxy::onAcceptable() {
  Time now = clock_.now();
  if (roomBy_ < now - kPatience) roomBy_ = kNever;  // none can have waited since then
  for (size_t n = 0; n < kAccepts; ++n) {
    if (!mayAccept() && now < roomBy_) {
      roomBy_ = std::min(roomBy_, now + kPatience);
      pause(roomBy_);
      break;
    }
    int error = 0;
    std::optional<StreamHost::Accepted> accepted = host_->accept(kNoTag, error);
    if (accepted) {
      Address destination = accepted->destination.address;
      take(std::move(*accepted), now);
      noteRoom(destination);
    } else if (error == EAGAIN) {
      roomBy_ = kNever;
      break;
    } else if (error == EMFILE) {
      ++figures_.refusedHere;
      bound_ = std::max<size_t>(1, std::min(bound_, used()));
    } else if (wantsPause(error)) {
      pause(now + kPause);
      break;
    }
  }
  watchRoom(now);
  if (std::exchange(isPeerFull_, false)) policy_.update(!full_, now);
}

// Notes when a peer has no room for further streams: new connections to it are then to be carried
// as packets at once.
void TcpProxy::noteRoom(const Address& destination) {
  isPeerFull_ |= policy_.takes(destination) && !lanes_.canOpen(destination);
}

// When a connection is turned away, its socket is closed at the end of this function, which resets
// the connection.
void TcpProxy::take(StreamHost::Accepted&& accepted, Time now) {
  std::optional<StreamHandle> opened = first_.join({accepted.source, accepted.destination});
  if (opened && !*opened) return;  // the destination has ended it
  if (opened || hasRoom()) {
    if (open(accepted, opened.value_or(StreamHandle{}), now)) {
      if (opened) list(*find(*opened));  // it may have bytes already
      return;
    }
  }
  // Without room, others than those in `first_` were accepted with them. They wait here instead of
  // in the kernel's queue.
  if (waiting_.size() < kMostWaiting && (hasRoom() || now < roomBy_)) {
    lookAgain_ = std::min(lookAgain_, now + kLookAgain);
    return waiting_.push_back({std::move(accepted), std::min(now + kPatience, roomBy_)});
  }
  ++figures_.refusedHere;
}

// `stream`: of the connection; empty: it is opened now. False: the peer has no room for it.
bool TcpProxy::open(StreamHost::Accepted& accepted, StreamHandle stream, Time now) {
  if (!stream) stream = lanes_.open({accepted.source, accepted.destination}, now);
  if (!stream) return false;
  ++figures_.accepted;
  host_->retag(*accepted.socket, tagOf(stream));  // and reports what has come meanwhile
  add(stream, std::move(accepted.socket),
      StreamPair{accepted.source.address, accepted.destination.address});
  return true;
}

// Tries the waiting connections again. None of them waits behind those to another peer. Works in
// place, because this runs in every turn.
void TcpProxy::takeWaiting(Time now) {
  size_t room = bound_ - std::min(bound_, open_ + first_.size());
  auto left = waiting_.begin();
  for (Waiting& each : waiting_) {
    if (room > 0 && open(each.accepted, {}, now)) {
      --room;
      acted_ = true;
    } else if (each.until <= now) {
      ++figures_.refusedHere;
    } else {
      if (&*left != &each) *left = std::move(each);
      ++left;
    }
  }
  waiting_.erase(left, waiting_.end());
  lookAgain_ = waiting_.empty() ? kNever : now + kLookAgain;
}

void TcpProxy::pause(Time until) {
  host_->wantAccept(false);
  acceptAgain_ = until;
}

void TcpProxy::acceptAgain(Time now) {
  if (acceptAgain_ == kNever) return;
  bool waitsForRoom = acceptAgain_ == roomBy_;
  if (now < acceptAgain_ && !(waitsForRoom && mayAcceptAgain())) return;
  acceptAgain_ = kNever;
  host_->wantAccept(true);
}

// Starts and stops taking connections over. New connections are carried as packets before the bound
// is reached, so that those that already wait to be accepted still find room.
void TcpProxy::watchRoom(Time now) {
  auto isNearly = [&](size_t count, size_t most) {
    return full_ ? count > enough(most) : count >= almost(most);
  };
  bool full = drainUntil_ != kNever || acceptAgain_ != kNever || isNearly(used(), bound_) ||
              isNearly(first_.size(), PendingConnects::kMost);
  if (full == full_) return;
  full_ = full;
  if (!full) bound_ = most_;
  policy_.update(!full_, now);
}

// ---- connections to local hosts

void TcpProxy::connect(StreamHandle stream, Time now) {
  const StreamEnds* ends = lanes_.ends(stream);
  if (!ends) return;
  ++connects_;
  if (drainUntil_ != kNever) return refuse(stream, StreamCause::kLimit, now);
  if (auto cause = accept_.refusal(ends->destination, now)) return refuse(stream, *cause, now);
  int error = EMFILE;
  std::unique_ptr<StreamSocket> socket;
  if (hasRoom()) {
    std::optional<Endpoint> source;
    if (clientsSource_) source = ends->source;
    socket = host_->connect(source, ends->destination, tagOf(stream), error);
    // The kernel still keeps an ended connection with these ports (TIME-WAIT), or the port is below
    // 1024 and not allowed: use the client's address with another port.
    if (!socket && source && (error == EADDRNOTAVAIL || error == EADDRINUSE || error == EACCES)) {
      source->port = 0;
      socket = host_->connect(source, ends->destination, tagOf(stream), error);
    }
  }
  if (!socket) return refuse(stream, causeOf(error), now);
  ++figures_.connected;
  noteRoom(ends->source.address);  // connections that the peer opens use the same room
  add(stream, std::move(socket), std::nullopt);
  attempts_.push_back({stream, now + kConnectTime});
}

// When this host does not find a local host in its network, its kernel tells that to the source of
// the connection. That is the client's address, which is behind the device.
bool TcpProxy::onUnreachable(ByteView packet, Time now) {
  if (attempts_.empty()) return false;
  std::optional<FlowKey> flow = unreachableTcp(packet);
  if (!flow) return false;
  const StreamEnds lost{{flow->source(), flow->sport}, {flow->destination(), flow->dport}};
  for (const Attempt& attempt : attempts_) {
    const StreamHandle stream = attempt.stream;
    ProxyConnection* pump = find(stream);
    if (!pump || !pump->connecting() || *lanes_.ends(stream) != lost) continue;
    std::optional<InnerPacket> ip = parseInnerPacket(packet);
    if (!monitor_.table().isOwn(ip->src)) return false;  // another host may have forged it
    refuse(stream, StreamCause::kUnreachable, now);
    drop(stream);
    return true;
  }
  return false;
}

void TcpProxy::refuse(StreamHandle stream, StreamCause cause, Time now) {
  figures_.count(cause);
  lanes_.reset(stream, cause, now);
}

void TcpProxy::expire(Time now) {
  for (; !attempts_.empty() && attempts_.front().until <= now; attempts_.pop_front()) {
    ProxyConnection* pump = find(attempts_.front().stream);
    if (!pump || !pump->connecting()) continue;
    StreamHandle stream = pump->stream();
    refuse(stream, StreamCause::kTimedOut, now);
    drop(stream);
  }
  first_.expire(now);
}

// ---- all connections

void TcpProxy::add(StreamHandle stream, std::unique_ptr<StreamSocket> socket,
                   const std::optional<StreamPair>& taken) {
  if (pumps_.size() <= stream.place) pumps_.resize(size_t{stream.place} + 1);
  std::unique_ptr<ProxyConnection>& slot = pumps_[stream.place];
  if (!slot) ++open_;
  slot = std::make_unique<ProxyConnection>(lanes_, stream, std::move(socket), taken);
}

ProxyConnection* TcpProxy::find(StreamHandle stream) {
  if (stream.place >= pumps_.size()) return nullptr;
  ProxyConnection* pump = pumps_[stream.place].get();
  return pump && pump->stream() == stream ? pump : nullptr;
}

void TcpProxy::drop(StreamHandle stream) {
  if (!find(stream)) return;
  pumps_[stream.place].reset();
  --open_;
}

void TcpProxy::list(ProxyConnection& pump) {
  if (std::exchange(pump.listed, true)) return;
  ready_.push_back(pump.stream());
}

void TcpProxy::onReady(uint64_t tag, Ready ready) {
  ProxyConnection* pump = find(streamOf(tag));
  if (!pump) return;
  pump->note(ready);
  list(*pump);
}

void TcpProxy::onEvent(const StreamEvent& event, Time now) {
  if (first_.onEvent(event, now)) return;
  if (event.opened) connect(event.stream, now);
  ProxyConnection* pump = find(event.stream);
  if (!pump) return;
  if (event.reset) {
    figures_.count(*event.reset);
    if (*event.reset == StreamCause::kForbidden && pump->taken())
      policy_.avoid(*pump->taken(), now);
    return drop(event.stream);
  }
  if (event.done) {
    ++figures_.closed;
    pump->close();
    return drop(event.stream);
  }
  list(*pump);
}

// Takes events that open connections last, so that no other event waits for the next turn.
bool TcpProxy::takeEvents(Time now) {
  for (StreamEvent event; connects_ < kConnects; acted_ = true) {
    if (!lanes_.pollStream(event)) return true;
    onEvent(event, now);
  }
  return false;
}

bool TcpProxy::turn(Time now) {
  expire(now);
  if (drainUntil_ <= now) drainUntil_ = kNever;
  acted_ = false;
  connects_ = 0;
  takeEvents(now);
  std::swap(ready_, moving_);
  acted_ |= !moving_.empty();
  for (StreamHandle stream : moving_)
    if (ProxyConnection* pump = find(stream)) move(*pump, now);
  moving_.clear();
  bool all = takeEvents(now);
  acted_ |= first_.hasOutput();
  takeWaiting(now);
  acceptAgain(now);
  watchRoom(now);
  if (std::exchange(isPeerFull_, false) || policy_.deadline() <= now) policy_.update(!full_, now);
  return !ready_.empty() || !all;
}

void TcpProxy::move(ProxyConnection& pump, Time now) {
  pump.listed = false;
  switch (pump.move(now)) {
    case ProxyConnection::Next::kWait:
      return;
    case ProxyConnection::Next::kMore:
      return list(pump);
    case ProxyConnection::Next::kFailed:
      figures_.count(pump.cause());
      return drop(pump.stream());
  }
}

}  // namespace braid
