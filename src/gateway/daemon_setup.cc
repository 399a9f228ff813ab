// The part of Daemon that carries configurations out: at start, on reload, and as names and paths change.

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

#include "gateway/daemon.h"
#include "gateway/decode_time.h"
#include "gateway/notify.h"
#include "tunnel/wire/pin.h"

namespace braid {

namespace {

constexpr Duration kNameRetry = 30s;
constexpr Duration kUplinkRetry = 1s;
// Below this the kernel takes IPv6 off an interface (RFC 8200 section 5).
constexpr size_t kSmallestIpv6Mtu = 1280;
// What a LAN's hosts use (RFC 894). A bridge drops larger frames than its port takes without a word, the
// tunnel answers or cuts them: a TAP device takes whole LAN frames.
constexpr size_t kEthernetMtu = 1500;
constexpr size_t kEthernetHeader = 14;

template <typename T>
bool has(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Does each step, and takes the done ones back when one throws.
class Transaction {
 public:
  void step(const std::function<void()>& doIt, std::function<void()> takeBack) {
    doIt();
    takeBacks_.push_back(std::move(takeBack));
  }
  void commit() { takeBacks_.clear(); }
  ~Transaction() {
    for (auto t = takeBacks_.rbegin(); t != takeBacks_.rend(); ++t) {
      try {
        (*t)();
      } catch (const std::exception& e) {
        spdlog::warn("{}", e.what());
      }
    }
  }

 private:
  std::vector<std::function<void()>> takeBacks_;
};

RouteSpec deviceRoute(const std::string& device, const Prefix& destination) {
  RouteSpec r;
  r.destination = destination;
  r.device = device;
  return r;
}

}  // namespace

std::vector<std::string> needsRestart(const Config& before, const Config& after, size_t bufferSize) {
  std::vector<std::string> out;
  auto fixed = [&](bool same, const char* key) {
    if (!same) out.push_back(std::string(key) + ": a changed value needs a restart");
  };
  fixed(before.identity.key == after.identity.key, "identity.key");
  fixed(before.identity.certificate == after.identity.certificate, "identity.certificate");
  fixed(before.device.name == after.device.name, "device.name");
  fixed(before.device.bridge == after.device.bridge, "device.bridge");
  fixed(before.tunnel.mode == after.tunnel.mode, "device.mode");
  if (after.device.mtu + kTaggedEthernetHeader > bufferSize) {
    out.push_back("device.mtu: packet buffers hold packets of up to " +
                  std::to_string(bufferSize - kTaggedEthernetHeader) +
                  " bytes: a larger value needs a restart");
  }
  fixed(before.tunnel.outerMtu == after.tunnel.outerMtu &&
            before.tunnel.maxOuterMtu == after.tunnel.maxOuterMtu,
        "tunnel.mtu");
  fixed(before.tunnel.maxFlows == after.tunnel.maxFlows, "tunnel.max-flows");
  fixed(before.tunnel.shim.maxFlows == after.tunnel.shim.maxFlows, "tunnel.ack-shim.max-flows");
  fixed(before.tunnel.decodeBuffer == after.tunnel.decodeBuffer, "recovery.decode-buffer");
  fixed(before.control.socket == after.control.socket && before.control.group == after.control.group,
        "control");
  fixed(before.cipher == after.cipher, "tunnel.cipher");
  fixed(before.state == after.state, "state");
  return out;
}

Config withDecodeTimes(Config config) {
  TunnelOptions& tunnel = config.tunnel;
  RecoveryOptions& options = tunnel.recoveryOptions;
  size_t size = tunnel.outerMtu ? tunnel.outerMtu : tunnel.maxOuterMtu;
  options.decodeTime = measureDecodeTimes(options.kMax, options.decodeTime.size(), size);
  spdlog::info("restoring lost packets of a block of {} takes: {}", options.kMax, decodeTimesText(options));
  return config;
}

// New things first, so that an error leaves what was there; then the old ones go.
void Daemon::setUpDevice(const DeviceConfig& before, const DeviceConfig& after) {
  const std::string& name = device_.name();
  Transaction all;
  for (const InterfaceAddress& a : after.addresses) {
    if (has(before.addresses, a)) continue;
    all.step([&] { host_.addAddress(name, a); }, [=, this] { host_.removeAddress(name, a); });
  }
  host_.setLinkUp(name);
  for (const Prefix& p : after.routes) {
    if (has(before.routes, p)) continue;
    RouteSpec route = deviceRoute(name, p);
    all.step([&] { host_.addRoute(route); }, [=, this] { host_.removeRoute(route); });
  }
  if (!after.bridge.empty()) host_.setMaster(name, after.bridge);
  all.commit();
  for (const Prefix& p : before.routes) {
    if (!has(after.routes, p)) host_.removeRoute(deviceRoute(name, p));
  }
  for (const InterfaceAddress& a : before.addresses) {
    if (!has(after.addresses, a)) host_.removeAddress(name, a);
  }
  Address v4, v6;
  for (const InterfaceAddress& a : after.addresses) {
    Address& own = a.address.isV4() ? v4 : v6;
    if (!own.bits()) own = a.address;
  }
  tunnel_.setOwnAddresses(v4, v6);
}

void Daemon::setUpListeners(const std::vector<Endpoint>& endpoints) {
  std::vector<Listener> next;
  Transaction all;
  for (const Endpoint& e : endpoints) {
    auto open = std::find_if(listeners_.begin(), listeners_.end(),
                             [&](const Listener& l) { return l.endpoint == e; });
    if (open != listeners_.end()) {
      next.push_back(*open);
      continue;
    }
    SocketId id = ids_.take();
    auto close = [this, id] {
      sockets_.close(id);
      ids_.release(id);
    };
    UdpSocketOptions options;
    options.local = e.address;
    options.port = e.port;
    all.step([&] { sockets_.open(id, options); }, close);
    next.push_back({e, id});
  }
  all.commit();
  for (const Listener& l : listeners_) {
    bool kept = std::any_of(next.begin(), next.end(), [&](const Listener& n) { return n.id == l.id; });
    if (kept) continue;
    sockets_.close(l.id);
    ids_.release(l.id);
  }
  listeners_ = std::move(next);
}

void Daemon::updateUplinks(bool changed) {
  for (const std::string& line : uplinks_.takeNotes()) spdlog::info("{}", line);
  if (changed) tunnel_.setUplinks(uplinkSpecs(), monotonicNow());
  retryTimer_.arm(uplinks_.wantsRetry() ? monotonicNow() + kUplinkRetry : kNever);
}

void Daemon::setUpPeers() {
  std::vector<PeerOptions> peers;
  for (const PeerConfig& p : config_.peers) {
    peers.push_back(p.options);
    for (const HostPort& name : p.hosts) {
      for (const Endpoint& e : resolved_[name]) {
        if (!has(peers.back().endpoints, e)) peers.back().endpoints.push_back(e);
      }
    }
  }
  tunnel_.setPeers(std::move(peers), monotonicNow());
}

// Names of peers that are up stay as they are: a round-robin answer must not move working subflows.
void Daemon::resolveNames(bool all) {
  bool missing = false;
  for (const PeerConfig& p : config_.peers) {
    if (!all && peersUp_.contains(p.options.name)) continue;
    for (const HostPort& name : p.hosts) {
      resolver_.request(name);
      missing = true;
    }
  }
  nameTimer_.arm(missing ? monotonicNow() + kNameRetry : kNever);
}

void Daemon::onResolved(const HostPort& name, const std::vector<Endpoint>& found) {
  if (found.empty())
    return warn(LogKind::kResolver, monotonicNow(), "cannot resolve " + name.host + "; will try again");
  if (resolved_[name] == found) return;
  resolved_[name] = found;
  for (const Endpoint& e : found) spdlog::info("{} is {}", name.host, e.toString());
  setUpPeers();
}

size_t Daemon::wantedDeviceMtu() const {
  if (config_.device.mtu) return config_.device.mtu;
  if (config_.tunnel.mode == TunnelOptions::Mode::kTap)
    return std::max(tunnel_.innerMtu(), kEthernetMtu + kEthernetHeader) - kEthernetHeader;
  return std::max(tunnel_.innerMtu(), kSmallestIpv6Mtu);
}

void Daemon::followDeviceMtu() {
  size_t mtu = wantedDeviceMtu();
  if (mtu == deviceMtu_) return;
  deviceMtu_ = mtu;
  try {
    host_.setMtu(device_.name(), static_cast<uint32_t>(mtu));
    spdlog::debug("{} has MTU {}", device_.name(), mtu);
  } catch (const SystemError& e) {
    warn(LogKind::kDevice, monotonicNow(), e.what());
  }
}

std::string Daemon::reload() {
  notify::reloading();
  std::string problems;
  ConfigResult result = loadConfig(config_.path, loading_);
  if (auto* errors = std::get_if<ConfigErrors>(&result)) {
    for (const ConfigError& e : *errors) problems += e.toString() + "\n";
  } else {
    Config& next = std::get<Config>(result);
    for (const std::string& line : needsRestart(config_, next, pool_.payload())) problems += line + "\n";
    if (problems.empty()) problems = apply(std::move(next));
  }
  if (!problems.empty()) {
    problems.pop_back();
    spdlog::error("reload: {}; the old configuration stays", problems);
  } else {
    spdlog::info("configuration read again");
  }
  notify::ready(summary());
  return problems;
}

std::string Daemon::apply(Config next) {
  bool newTrace = next.trace != config_.trace;
  UniqueFd traceFile;
  try {
    if (newTrace && !next.trace.empty()) traceFile = openTraceFile(next.trace);
    setUpMeters(next);
    setUpListeners(next.listen);
    setUpDevice(config_.device, next.device);
  } catch (const std::runtime_error& e) {
    setUpMeters(config_);
    setUpListeners(config_.listen);
    return std::string(e.what()) + "\n";
  }
  const RecoveryOptions& before = config_.tunnel.recoveryOptions;
  RecoveryOptions& after = next.tunnel.recoveryOptions;
  if (before.kMax == after.kMax) {
    after.decodeTime = before.decodeTime;
  } else {
    next = withDecodeTimes(std::move(next));
  }
  config_ = std::move(next);
  if (newTrace) {
    if (std::string problem = trace(std::move(traceFile)); !problem.empty()) spdlog::error("{}", problem);
  }
  setLogLevel(config_.logLevel);
  tunnel_.setTunables(config_.tunnel);
  setUpPeers();
  keepMeters();
  uplinks_.configure(config_.uplinks, monitor_.table());
  updateUplinks(true);
  std::erase_if(peersUp_, [&](const std::string& name) {
    return std::none_of(config_.peers.begin(), config_.peers.end(),
                        [&](const PeerConfig& p) { return p.options.name == name; });
  });
  resolveNames(true);
  return {};
}

TunnelStatus Daemon::tunnelStatus() {
  return tunnel_.status(monotonicNow());
}

HostDrops Daemon::hostDrops() const {
  UdpSocketCounters sockets = sockets_.counters();
  const DeviceCounters& device = device_.counters();
  HostDrops out;
  out.socketOverflow = sockets.overflowed;
  out.socketTruncated = sockets.truncated;
  out.socketNoBuffer = sockets.noBuffer;
  out.socketQueueFull = sockets.queueDrops;
  out.socketSendFailed = sockets.sendErrors + sockets.noMemory;
  out.socketTooBig = sockets.tooBig;
  out.socketClosed = sockets_.orphans();
  out.deviceReadTruncated = device.readTooBig;
  out.deviceReadNoBuffer = device.readNoBuffer;
  out.deviceWriteFull = device.writeFull;
  out.deviceWriteFailed = device.writeErrors;
  return out;
}

GatewayStatus Daemon::gatewayStatus() {
  GatewayStatus out;
  out.version = BRAID_VERSION;
  out.config = config_.path;
  out.pin = formatPin(identity_.pin);
  out.device = device_.name();
  out.mode = config_.tunnel.mode == TunnelOptions::Mode::kTun ? "tun" : "tap";
  out.pid = static_cast<uint64_t>(::getpid());
  out.uptime = monotonicNow() - started_;
  out.deviceMtu = deviceMtu_;
  for (const Listener& l : listeners_) out.listen.push_back(l.endpoint.toString());
  out.uplinks = uplinks_.status();
  addMeters(out.uplinks);
  out.drops = hostDrops();
  out.recovery = config_.tunnel.recoveryOptions;
  if (trace_) out.trace = trace_->status();
  return out;
}

std::string Daemon::trace(UniqueFd file) {
  if (!file) return endTrace(), "";
  if (std::string problem = traceFileProblem(file.get()); !problem.empty())
    return "cannot write the trace: " + problem;
  return startTrace(std::move(file));
}

// Gives what is wrong; empty: it is on.
std::string Daemon::startTrace(UniqueFd file) {
  endTrace();
  try {
    trace_ = std::make_unique<TraceWriter>(std::move(file), monotonicNow());
  } catch (const std::system_error& e) {
    return std::string("the system gives no thread for the trace: ") + e.what();
  }
  tunnel_.setTrace(trace_.get());
  spdlog::info("recovery trace on");
  return {};
}

void Daemon::endTrace() {
  if (!trace_) return;
  tunnel_.setTrace(nullptr);
  trace_.reset();
  spdlog::info("recovery trace off");
}

}  // namespace braid
