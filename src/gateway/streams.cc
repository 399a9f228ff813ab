#include "gateway/streams.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace braid {

namespace {

// Nobody's: a connection that has no stream yet.
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

// No new ones are taken over from here on: those that wait to be accepted by then, and those to hosts here, still find
// room.
size_t almost(size_t most) {
  return most - most / 16;
}
// New ones are taken over again when a tenth of the bound is free, so that the rules are not changed for each connection.
size_t enough(size_t most) {
  return most - std::max(most / 10, most / 16 + 1);
}

}  // namespace

Streams::Streams(Host& host, const NetworkMonitor& monitor, const std::string& device, StreamLanes& lanes,
                 LogLimiter& log)
    : clock_(host.clock()),
      monitor_(monitor),
      lanes_(lanes),
      device_(device),
      host_(host.openStreams(device, *this)),
      gate_(*host_, host.network(), lanes, log) {}

Streams::~Streams() = default;

void Streams::configure(const Config& config, int index, Time now) {
  most_ = bound_ = most(config);
  clientsSource_ = config.streams.source == StreamsConfig::Source::kClient;
  gate_.configure(config, device_, index);
  gate_.follow(monitor_.table());
  watchRoom(now);
  gate_.update(!full_, now);
}

size_t Streams::most(const Config& config) const {
  return std::min(config.streams.most, host_->most());
}

void Streams::onChange(Time now) {
  gate_.follow(monitor_.table());
  gate_.update(!full_, now);
}

Time Streams::deadline() const {
  return std::min({gate_.deadline(), acceptAgain_, attempts_.empty() ? kNever : attempts_.front().until,
                   waiting_.empty() ? kNever : waiting_.front().until, lookAgain_});
}

void Streams::stop() {
  gate_.stop();
  host_->wantAccept(false);
  pumps_.clear();
  waiting_.clear();
  lookAgain_ = kNever;
  open_ = 0;
}

StreamFigures Streams::figures() const {
  StreamFigures out = figures_;
  out.on = true;
  out.taking = gate_.open();
  out.open = open_;
  out.most = most_;
  out.lifts = gate_.lifts();
  return out;
}

// ---- connections of hosts here

void Streams::onAcceptable() {
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
  if (std::exchange(isPeerFull_, false)) gate_.update(!full_, now);
}

// Once no more of them find room with their peer, connections are to stay packets at once.
void Streams::noteRoom(const Address& destination) {
  isPeerFull_ |= gate_.takes(destination) && !lanes_.canOpen(destination);
}

// The socket of one that is turned away goes at the end, and with it the connection, by a reset.
void Streams::take(StreamHost::Accepted&& accepted, Time now) {
  if (hasRoom()) {
    if (open(accepted, now)) return;
    if (waiting_.size() < kMostWaiting) {
      lookAgain_ = std::min(lookAgain_, now + kLookAgain);
      return waiting_.push_back({std::move(accepted), std::min(now + kPatience, roomBy_)});
    }
  }
  ++figures_.refusedHere;
}

// False: its peer has no room for it.
bool Streams::open(StreamHost::Accepted& accepted, Time now) {
  StreamHandle stream = lanes_.open({accepted.source, accepted.destination}, now);
  if (!stream) return false;
  ++figures_.accepted;
  host_->retag(*accepted.socket, tagOf(stream));  // and tells what has come meanwhile
  add(stream, std::move(accepted.socket), StreamPair{accepted.source.address, accepted.destination.address});
  return true;
}

// None that is here waits for the peer of another. In place: this is called in every turn.
void Streams::takeWaiting(Time now) {
  auto left = waiting_.begin();
  for (Waiting& each : waiting_) {
    if (open(each.accepted, now)) {
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

void Streams::pause(Time until) {
  host_->wantAccept(false);
  acceptAgain_ = until;
}

void Streams::acceptAgain(Time now) {
  if (acceptAgain_ == kNever) return;
  bool waitsForRoom = acceptAgain_ == roomBy_;
  if (now < acceptAgain_ && !(waitsForRoom && mayAcceptAgain())) return;
  acceptAgain_ = kNever;
  host_->wantAccept(true);
}

// The packet lane takes over before the bound: what waits to be accepted by then still finds room.
void Streams::watchRoom(Time now) {
  bool full = acceptAgain_ != kNever || (full_ ? used() > enough(bound_) : used() >= almost(bound_));
  if (full == full_) return;
  full_ = full;
  if (!full) bound_ = most_;
  gate_.update(!full_, now);
}

// ---- connections to hosts here

void Streams::connect(StreamHandle stream, Time now) {
  const StreamEnds* ends = lanes_.ends(stream);
  if (!ends) return;
  ++connects_;
  // What a peer's packets for this host meet at its firewall, a connection of the host to itself would not. An address that
  // stands at an interface is this host's even where the routes lead elsewhere.
  if (monitor_.table().isOwn(ends->destination.address)) return refuse(stream, StreamCause::kForbidden, now);
  // Some of what changed was missed: it may be this host's.
  if (monitor_.deadline() != kNever) return refuse(stream, StreamCause::kLimit, now);
  int error = EMFILE;
  std::unique_ptr<StreamSocket> socket;
  if (hasRoom()) {
    std::optional<Endpoint> source;
    if (clientsSource_) source = ends->source;
    socket = host_->connect(source, ends->destination, tagOf(stream), error);
    // The kernel still keeps a connection with these ports that has ended (TIME-WAIT), or the port is below 1024 and not
    // allowed: the client's address must do.
    if (!socket && source && (error == EADDRNOTAVAIL || error == EADDRINUSE || error == EACCES)) {
      source->port = 0;
      socket = host_->connect(source, ends->destination, tagOf(stream), error);
    }
  }
  if (!socket) return refuse(stream, causeOf(error), now);
  ++figures_.connected;
  noteRoom(ends->source.address);  // what the peer opens is taken from the same room
  add(stream, std::move(socket), std::nullopt);
  attempts_.push_back({stream, now + kConnectTime});
}

void Streams::refuse(StreamHandle stream, StreamCause cause, Time now) {
  figures_.count(cause);
  lanes_.reset(stream, cause, now);
}

void Streams::expire(Time now) {
  for (; !attempts_.empty() && attempts_.front().until <= now; attempts_.pop_front()) {
    StreamPump* pump = find(attempts_.front().stream);
    if (!pump || !pump->connecting()) continue;
    StreamHandle stream = pump->stream();
    refuse(stream, StreamCause::kTimedOut, now);
    drop(stream);
  }
}

// ---- all

void Streams::add(StreamHandle stream, std::unique_ptr<StreamSocket> socket,
                  const std::optional<StreamPair>& taken) {
  if (pumps_.size() <= stream.place) pumps_.resize(size_t{stream.place} + 1);
  std::unique_ptr<StreamPump>& slot = pumps_[stream.place];
  if (!slot) ++open_;
  slot = std::make_unique<StreamPump>(lanes_, stream, std::move(socket), taken);
}

StreamPump* Streams::find(StreamHandle stream) {
  if (stream.place >= pumps_.size()) return nullptr;
  StreamPump* pump = pumps_[stream.place].get();
  return pump && pump->stream() == stream ? pump : nullptr;
}

void Streams::drop(StreamHandle stream) {
  if (!find(stream)) return;
  pumps_[stream.place].reset();
  --open_;
}

void Streams::list(StreamPump& pump) {
  if (std::exchange(pump.listed, true)) return;
  ready_.push_back(pump.stream());
}

void Streams::onReady(uint64_t tag, Ready ready) {
  StreamPump* pump = find(streamOf(tag));
  if (!pump) return;
  pump->note(ready);
  list(*pump);
}

void Streams::onEvent(const StreamEvent& event, Time now) {
  if (event.opened) connect(event.stream, now);
  StreamPump* pump = find(event.stream);
  if (!pump) return;
  if (event.reset) {
    figures_.count(*event.reset);
    if (*event.reset == StreamCause::kForbidden && pump->taken()) gate_.avoid(*pump->taken(), now);
    return drop(event.stream);
  }
  if (event.done) {
    ++figures_.closed;
    pump->close();
    return drop(event.stream);
  }
  list(*pump);
}

// Openings come last, so that nothing else waits for the next turn.
bool Streams::takeEvents(Time now) {
  for (StreamEvent event; connects_ < kConnects; acted_ = true) {
    if (!lanes_.pollStream(event)) return true;
    onEvent(event, now);
  }
  return false;
}

bool Streams::turn(Time now) {
  expire(now);
  acted_ = false;
  connects_ = 0;
  takeEvents(now);
  std::swap(ready_, moving_);
  acted_ |= !moving_.empty();
  for (StreamHandle stream : moving_)
    if (StreamPump* pump = find(stream)) move(*pump, now);
  moving_.clear();
  bool all = takeEvents(now);
  takeWaiting(now);
  acceptAgain(now);
  watchRoom(now);
  if (std::exchange(isPeerFull_, false) || gate_.deadline() <= now) gate_.update(!full_, now);
  return !ready_.empty() || !all;
}

void Streams::move(StreamPump& pump, Time now) {
  pump.listed = false;
  switch (pump.move(now)) {
    case StreamPump::Next::kWait:
      return;
    case StreamPump::Next::kMore:
      return list(pump);
    case StreamPump::Next::kFailed:
      figures_.count(pump.cause());
      return drop(pump.stream());
  }
}

}  // namespace braid
