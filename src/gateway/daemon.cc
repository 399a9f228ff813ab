#include "gateway/daemon.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "gateway/notify.h"
#include "gateway/privileges.h"

namespace braid {

namespace {

// Packets and datagrams per source and turn of the loop: enough for full batches, too few to be felt as a
// delay.
constexpr size_t kTurn = 256;
constexpr Duration kNameRetry = 30s;
// All packets under way in this process; at 2 KB each about 140 MB at most, taken on demand.
constexpr size_t kPoolPackets = 65536;

// The largest packet that a socket or the device may give.
size_t poolPayload(const Config& config) {
  return std::max({size_t{2048}, config.tunnel.maxOuterMtu, config.tunnel.outerMtu,
                   config.device.mtu + kTaggedEthernetHeader});
}

uint64_t unpredictable() {
  uint64_t seed;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed)
    throw SystemError(errno, "the kernel gives no random bytes");
  return seed;
}

DtlsOptions dtlsOptions(const Config& config) {
  DtlsOptions out;
  out.cipher = config.cipher;
  return out;
}

Device::Kind deviceKind(const Config& config) {
  return config.tunnel.mode == TunnelOptions::Mode::kTun ? Device::Kind::kTun : Device::Kind::kTap;
}

spdlog::level::level_enum levelOf(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kPeerDown:
    case Event::Kind::kHandshakeFailed:
    case Event::Kind::kSubflowFailed:
    case Event::Kind::kCapReached:
      return spdlog::level::warn;
    case Event::Kind::kRekeyed:
      return spdlog::level::debug;
    default:
      return spdlog::level::info;
  }
}

}  // namespace

Daemon::Daemon(Config config, LoadOptions loading)
    : config_(withDecodeTimes(std::move(config))),
      loading_(std::move(loading)),
      started_(monotonicNow()),
      identity_(loadIdentity(config_.identity.key, config_.identity.certificate)),
      pool_(poolPayload(config_), kPoolPackets),
      handshakes_(identity_, dtlsOptions(config_)),
      tunnel_(config_.tunnel, pool_, handshakes_, unpredictable()),
      device_(deviceKind(config_), config_.device.name),
      sockets_(loop_, pool_, *this,
               [this](ReceivedDatagram& r) {
                 tunnel_.onDatagram(r.from, r.ecn, std::move(r.bytes), monotonicNow());
               }),
      uplinks_(sockets_, host_, ids_),
      resolver_(loop_, [this](const HostPort& n, const std::vector<Endpoint>& e) { onResolved(n, e); }),
      deviceWatcher_(loop_, device_.fd(), [this] { onDeviceReadable(); }),
      netlinkWatcher_(loop_, monitor_.fd(), [this] { onNetlink(); }),
      tunnelTimer_(loop_, [] {}),  // beforeWait() does what is due
      retryTimer_(loop_,
                  [this] {
                    bool changed = uplinks_.update(monitor_.table());
                    uplinks_.warn();
                    updateUplinks(changed);
                  }),
      nameTimer_(loop_, [this] { resolveNames(false); }),
      meterTimer_(loop_, [this] { keepMeters(); }),
      watchdogTimer_(loop_,
                     [this] {
                       notify::watchdog();
                       watchdogTimer_.arm(monotonicNow() + notify::watchdogInterval());
                     }),
      term_(loop_, SIGTERM, [this] { stop(); }),
      interrupt_(loop_, SIGINT, [this] { stop(); }),
      hangup_(loop_, SIGHUP, [this] { reload(); }),
      prepare_(loop_, [this] { beforeWait(); }) {
  followDeviceMtu();
  setUpDevice({}, config_.device);
  setUpListeners(config_.listen);
  setUpPeers();
  setUpMeters(config_);
  keepMeters();
  uplinks_.configure(config_.uplinks, monitor_.table());
  updateUplinks(true);
  ControlHandler& handler = *this;
  control_ =
      std::make_unique<ControlServer>(loop_.raw(), config_.control.socket, config_.control.group, handler);
  dropPrivileges();
  if (config_.trace.empty()) return;
  if (std::string problem = startTrace(openTraceFile(config_.trace)); !problem.empty())
    throw std::runtime_error(problem);
}

Daemon::~Daemon() = default;

bool Daemon::run() {
  resolveNames(true);
  if (notify::watchdogInterval() > Duration::zero()) watchdogTimer_.arm(monotonicNow());
  spdlog::info("braid is ready: {}", summary());
  notify::ready(summary());
  loop_.run();
  return !failed_;
}

void Daemon::onDeviceReadable() {
  Time now = monotonicNow();
  device_.read(pool_, kTurn, [&](Packet&& p) { tunnel_.onInnerPacket(std::move(p), now); });
  if (!device_.gone()) return;
  spdlog::critical("device {} was deleted", device_.name());
  failed_ = true;
  stop();
}

void Daemon::onNetlink() {
  for (const NetlinkChange& c : monitor_.process()) spdlog::debug("{}", c.text);
  updateUplinks(uplinks_.update(monitor_.table()));
}

bool Daemon::sendDatagrams(Time now) {
  size_t n = 0;
  for (; n < kTurn; ++n) {
    Datagram d;
    if (!tunnel_.pollDatagram(d, now)) break;
    sockets_.send(std::move(d));
  }
  sockets_.flush();
  return n == kTurn;
}

bool Daemon::deliverPackets() {
  size_t n = 0;
  for (; n < kTurn; ++n) {
    Packet p;
    if (!tunnel_.pollInnerPacket(p)) break;
    device_.write(p.view());
  }
  return n == kTurn;
}

// Once per turn of the loop, after everything that happened was handed to the tunnel.
void Daemon::beforeWait() {
  Time now = monotonicNow();
  if (tunnel_.nextDeadline() <= now) tunnel_.onTimer(now);
  bool more = sendDatagrams(now);
  more |= deliverPackets();
  logEvents(now);
  followDeviceMtu();
  tunnelTimer_.arm(tunnel_.nextDeadline());
  prepare_.keepAwake(more);
}

void Daemon::logEvents(Time now) {
  Event e;
  bool peersChanged = false;
  while (tunnel_.pollEvent(e)) {
    if (e.kind == Event::Kind::kPeerUp) peersChanged |= peersUp_.insert(e.peer).second;
    if (e.kind == Event::Kind::kPeerDown) peersChanged |= peersUp_.erase(e.peer) > 0;
    uint64_t suppressed = 0;
    bool handshake = e.kind == Event::Kind::kHandshakeFailed;
    if (!limiter_.allow(handshake ? LogKind::kHandshake : LogKind::kSubflow, now, suppressed)) continue;
    std::string who = e.peer.empty() ? std::string() : "peer " + e.peer + ": ";
    spdlog::log(levelOf(e.kind), "{}{}{}", who, e.text, LogLimiter::suffix(suppressed));
  }
  if (!peersChanged) return;
  notify::status(summary());
  if (peersUp_.size() < config_.peers.size() && nameTimer_.deadline() == kNever)
    nameTimer_.arm(now + kNameRetry);
}

void Daemon::onSendError(const Route& route, int error) {
  Time now = monotonicNow();
  tunnel_.onSendError(route, now);
  warn(LogKind::kSendError, now, "cannot send to " + route.remote.toString() + ": " + std::strerror(error));
}

void Daemon::onTooBig(const Route& route, size_t size, bool) {
  tunnel_.onTooBig(route, size, monotonicNow());
}

void Daemon::warn(LogKind kind, Time now, const std::string& line) {
  uint64_t suppressed = 0;
  if (limiter_.allow(kind, now, suppressed)) spdlog::warn("{}{}", line, LogLimiter::suffix(suppressed));
}

void Daemon::drainOutput() {
  constexpr int kRounds = 16;  // enough for a farewell on each subflow of many peers
  for (int i = 0; i < kRounds && sendDatagrams(monotonicNow()); ++i) {
  }
}

void Daemon::stop() {
  spdlog::info("braid stops");
  notify::stopping();
  control_.reset();
  tunnel_.close();
  drainOutput();
  endTrace();
  endMeters();
  uplinks_.close();
  for (const std::string& line : host_.undo()) spdlog::warn("{}", line);
  loop_.stop();
}

std::string Daemon::summary() const {
  return std::to_string(peersUp_.size()) + " of " + std::to_string(config_.peers.size()) + " peers up";
}

}  // namespace braid
