#include "gateway/gateway.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>

#include "gateway/config/settings.h"
#include "gateway/decode_time.h"
#include "gateway/join/address_plan.h"
#include "host/linux/files.h"
#include "host/system.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

constexpr Duration kUplinkRetry = 1s;
constexpr Duration kSourcesPause = 5s;
constexpr Duration kShrinkStep = 10ms;  // packets are carried in between
// Longer than the pauses of a flow, so that its buffers are not freed and allocated again and
// again.
constexpr Duration kShrinkAfter = 5s;
// All packets under way in this process. At 2 KB each they take about 140 MB at most, allocated on
// demand.
constexpr size_t kPoolPackets = 65536;

// Queues of the device. With this number, a ping is unlikely to share its queue with a flood.
constexpr unsigned kDeviceQueues = 64;

// Size of the largest packet that a socket or the device may return.
size_t poolPayload(const Config& config) {
  return std::max({size_t{2048}, config.tunnel.maxOuterMtu, config.tunnel.outerMtu,
                   config.device.mtu + kTaggedEthernetHeader});
}

DtlsOptions dtlsOptions(const Config& config) {
  DtlsOptions out;
  out.cipher = config.cipher;
  return out;
}

bool isTun(const Config& config) {
  return config.tunnel.mode == TunnelOptions::Mode::kTun;
}

DeviceOptions deviceOptions(const Config& config) {
  TunDevice::Kind kind = isTun(config) ? TunDevice::Kind::kTun : TunDevice::Kind::kTap;
  return {kind, config.device.name, config.offloads.device, kDeviceQueues};
}

// The names of the uplinks' interfaces, as far as they are known.
std::vector<std::string> knownInterfaces(const Config& config, const NetworkTable& host) {
  std::vector<std::string> out = interfacesOf(config.uplinks, host);
  std::erase(out, "");
  return out;
}

// Creates the folders for what is kept over a restart: counts of metered uplinks, the initiators of
// a gateway that listens, and invitations. A host that cannot have such a folder still carries
// packets.
void makeStateFolders(const Config& config) {
  auto isMetered = [](const UplinkConfig& uplink) { return uplink.meter.has_value(); };
  bool listens = !config.listen.empty();
  std::set<std::string> folders;
  if (listens || std::ranges::any_of(config.uplinks, isMetered))
    folders.insert(std::filesystem::path(config.state).parent_path());
  if (listens) folders.insert(std::filesystem::path(config.peersFolder).parent_path());
  folders.erase("");
  for (const std::string& folder : folders) {
    if (std::string problem = makeOwnFolder(folder); !problem.empty())
      spdlog::warn(
          "{}; make it for the daemon's user, or set `state` and `peers-folder`: what belongs "
          "there is lost "
          "with a restart",
          problem);
  }
}

// familyLeftOut() for networks given as texts.
std::string leftOut(const std::vector<std::string>& networks) {
  std::vector<Prefix> routes;
  for (const std::string& text : networks)
    if (auto network = Prefix::parse(text)) routes.push_back(*network);
  return familyLeftOut(routes);
}

void logWarnings(const Config& config) {
  for (const ConfigError& warning : config.warnings) spdlog::warn("{}", warning.toString());
}

spdlog::level::level_enum levelOf(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kPeerDown:
    case Event::Kind::kPeerReplaced:
    case Event::Kind::kHandshakeFailed:
    case Event::Kind::kSubflowFailed:
    case Event::Kind::kCapReached:
    case Event::Kind::kForgedAck:
    case Event::Kind::kDirect:
      return spdlog::level::warn;
    case Event::Kind::kRekeyed:
      return spdlog::level::debug;
    default:
      return spdlog::level::info;
  }
}

// Whether a peer may have come, left or moved to another address.
bool changesInitiators(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kPeerUp:
    case Event::Kind::kPeerDown:
    case Event::Kind::kPeerInUse:
    case Event::Kind::kPeerReplaced:
    case Event::Kind::kSubflowUp:
    case Event::Kind::kAddressChanged:
      return true;
    default:
      return false;
  }
}

// Whether the last path that answers may have fallen silent, or a first one may answer.
bool changesPaths(Event::Kind kind) {
  return changesInitiators(kind) || kind == Event::Kind::kSubflowSuspect ||
         kind == Event::Kind::kSubflowFailed;
}

}  // namespace

Gateway::Gateway(Config config, LoadOptions loading, Host& host)
    : host_(host),
      config_(withDecodeTimes(std::move(config), host.clock())),
      loading_(std::move(loading)),
      numbers_(numbersOf(config_, host.slot())),
      started_(host.clock().now()),
      identity_(
          loadIdentity(config_.identity.key, config_.identity.certificate, loading_.credentials)),
      pool_(poolPayload(config_), kPoolPackets),
      handshakes_(identity_, dtlsOptions(config_)),
      tunnel_(config_.tunnel, pool_, handshakes_, host.randomKey()),
      pump_(host, deviceOptions(config_), config_.offloads.sockets, numbers_.ownMark(), pool_,
            tunnel_, log_),
      monitor_(host.watchNetwork([this] { onNetworkChange(); })),
      device_(host_.network(), pump_.device().name()),
      routes_(host, log_, pump_.device().name(), numbers_),
      nat_(host, pump_.device().name()),
      reconciler_(host_.network(), log_),
      listeners_(pump_.sockets(), socketIds_),
      initiators_(tunnel_, listeners_, log_),
      joins_(
          config_, identity_.pin, log_, [this] { return reload(); },
          [] { return std::time(nullptr); },
          [this] { return networksOfHost(monitor_.table(), host_.network(), device_.name()); }),
      meters_(tunnel_, log_),
      uplinks_(pump_.sockets(), host_.network(), socketIds_, numbers_),
      history_(tunnel_, started_),
      resolver_(
          host, log_,
          [this] {
            updatePeers();
            followRoutes();
          }) {
  Time now = host_.clock().now();
  makeStateFolders(config_);
  linkNames_ = knownInterfaces(config_, monitor_.table());
  followMtu(now);
  applyDevice(config_);
  nat_.configure(config_, linkNames_);
  listeners_.open(config_.listen);
  updatePeers();
  meters_.setUp(config_);
  meters_.keep(config_.uplinks, now);
  removeStale();
  configureUplinks();
  openProxy();
  updateUplinks(true);
  followRoutes();  // with the marks of the uplinks
  initiators_.begin(config_, now);
  joins_.begin(now);
  handshakes_.setJoinHandler(&joins_);
}

Gateway::~Gateway() = default;

void Gateway::start() {
  logWarnings(config_);
  if (!config_.trace.empty()) {
    std::string problem = trace(openTraceFile(config_.trace));
    if (!problem.empty()) throw std::runtime_error(problem);
  }
  resolveNames(true);
}

bool Gateway::runOnce() {
  Time now = host_.clock().now();
  onTimers(now);
  bool more = proxy_ && proxy_->turn(now);
  more |= pump_.turn(now);
  // Packets that were just sent may have made room for more. What the streams add now is sent in
  // the next turn.
  if (proxy_) more |= proxy_->turn(now) || proxy_->hasActed();
  handleEvents(now);
  followMtu(now);
  if (shrinkAt_ == kNever && pool_.hasSpare()) shrinkAt_ = now + kShrinkAfter;
  return more;
}

Time Gateway::nextDeadline() const {
  return std::min({tunnel_.nextDeadline(), uplinkRetryAt_, sourcesAt_, routesRetryAt_,
                   routes_.deadline(), watch_.deadline(), shrinkAt_, monitor_.deadline(),
                   reconciler_.deadline(), resolver_.deadline(), meters_.deadline(),
                   initiators_.deadline(), device_.deadline(), joins_.deadline(),
                   history_.deadline(), proxy_ ? proxy_->deadline() : kNever});
}

void Gateway::onTimers(Time now) {
  if (monitor_.deadline() <= now) onNetworkChange();
  if (reconciler_.deadline() <= now) {
    reconciler_.onTimer(now);
    nat_.note();
  }
  if (routes_.deadline() <= now) routes_.keep(now);
  if (routesRetryAt_ <= now) followRoutes();
  if (watch_.deadline() <= now) followTunnel(now);
  if (uplinkRetryAt_ <= now) {
    bool changed = uplinks_.update(monitor_.table());
    uplinks_.warn();
    updateUplinks(changed);
  }
  if (sourcesAt_ <= now) judgeSources(now);
  if (resolver_.deadline() <= now) resolveNames(false);  // a working path keeps its addresses
  if (meters_.deadline() <= now) meters_.keep(config_.uplinks, now);
  if (initiators_.deadline() <= now) initiators_.keep(now);
  if (joins_.deadline() <= now) joins_.turn(now);
  if (history_.deadline() <= now) history_.keep(now);
  if (shrinkAt_ <= now) shrinkAt_ = pool_.shrink() ? now + kShrinkStep : kNever;
  if (tunnel_.nextDeadline() <= now) tunnel_.onTimer(now);
}

void Gateway::stop() {
  constexpr int kRounds = 16;  // enough for a CLOSE on each subflow of many peers
  spdlog::info("braid stops");
  initiators_.keep(host_.clock().now());
  if (proxy_) proxy_->stop();
  tunnel_.close();
  for (int i = 0; i < kRounds && pump_.sendDatagrams(host_.clock().now()); ++i) {
  }
  trace({});
  meters_.end(host_.clock().now());
  uplinks_.close();
  nat_.stop();
  routes_.stop();
  for (const std::string& line : host_.network().undo()) spdlog::warn("{}", line);
}

void Gateway::applyDevice(const Config& config) {
  device_.apply(config.device);
  try {
    applyRoutes(config);
  } catch (const SystemError&) {
    device_.applyOrWarn(config_.device);
    throw;
  }
  followOwnNetworks(config);
}

void Gateway::followOwnNetworks(const Config& config) {
  std::vector<Prefix> own = ownNetworks(config, monitor_.table(), device_.name());
  if (own == std::exchange(ownNetworks_, own)) return;
  tunnel_.setLocalNetworks(std::move(own));
}

void Gateway::applyRoutes(const Config& config) {
  RouteSituation situation{device_.name(), numbers_, watch_.carries(), uplinks_.replyMarks(),
                           resolver_.asksHere()};
  routes_.apply(planRoutes(config, monitor_.table(), situation));
  routes_.keep(host_.clock().now());
}

void Gateway::followRoutes() {
  Time now = host_.clock().now();
  routesRetryAt_ = kNever;
  try {
    applyRoutes(config_);
  } catch (const SystemError& e) {
    log_.warn(LogKind::kNetwork, now, e.what());
    routesRetryAt_ = now + kUplinkRetry;
  }
}

void Gateway::followTunnel(Time now) {
  bool before = watch_.carries();
  watch_.onChange(tunnel_.answers(), now);
  watch_.onTimer(now);
  bool carries = watch_.carries();
  if (carries == before) return;
  followRoutes();
  if (config_.device.whenDown != DeviceConfig::WhenDown::kDirect) return;
  Event e{carries ? Event::Kind::kRouted : Event::Kind::kDirect,
          {},
          carries ? "packets to device.routes go through the tunnel"
                  : "no peer answers: packets to device.routes leave by the host's own routes, in "
                    "clear"};
  spdlog::log(levelOf(e.kind), "{}", e.text);
  history_.onEvent(e);
}

// Removes what a killed daemon left, whether this one needs the like or not: it may have had another
// configuration.
void Gateway::removeStale() {
  try {
    InterceptPolicy::removeStale(host_.network(), numbers_);
    uplinks_.removeStale();
  } catch (const SystemError& e) {
    spdlog::warn("routes and rules that a killed daemon may have left stay: {}", e.what());
  }
}

// A host that cannot do streams still carries packets.
void Gateway::openProxy() {
  if (!config_.tunnel.streams.on) return;
  try {
    proxy_ = std::make_unique<TcpProxy>(host_, monitor_, device_.name(), tunnel_.streams(), log_);
    configureProxy();
  } catch (const SystemError& e) {
    spdlog::warn("no streams: {}; all connections are carried as packets", e.what());
    proxy_.reset();
  }
  tunnel_.setTunables(tunnelOptions());
}

// A new session's peer is told of at most as many streams as this gateway can have connections,
// because further ones would be reset.
TunnelOptions Gateway::tunnelOptions() const {
  TunnelOptions out = config_.tunnel;
  out.streams.on &= proxy_ != nullptr;
  if (proxy_) out.streams.most = std::min(out.streams.most, proxy_->most(config_));
  return out;
}

void Gateway::configureProxy() {
  proxy_->configure(config_, linkNames_, numbers_, host_.clock().now());
}

void Gateway::configureUplinks() {
  uplinks_.keepReplies(endangersReplies(config_, monitor_.table()));
  uplinks_.configure(config_.uplinks, monitor_.table());
}

void Gateway::followMtu(Time now) {
  device_.setMtu(deviceMtu(config_, tunnel_.innerMtu()), log_, now);
}

void Gateway::updatePeers() {
  tunnel_.setPeers(resolver_.peers(config_.peers), host_.clock().now());
}

void Gateway::resolveNames(bool all) {
  resolver_.resolve(config_.peers, uplinks_.ways(config_.dns.servers),
                    workingPaths(tunnel_, config_.peers, true, host_.clock().now()), all);
  for (const PeerResolver::Portal& portal : resolver_.takePortals()) {
    spdlog::warn("{}", portal.text);
    history_.onPortal(portal.uplink, portal.text);
  }
}

void Gateway::updateUplinks(bool changed) {
  for (const std::string& line : uplinks_.takeNotes()) spdlog::info("{}", line);
  if (changed) {
    std::vector<UplinkSpec> specs = uplinks_.specs();
    meters_.addTo(specs, config_.uplinks);
    tunnel_.setUplinks(std::move(specs), host_.clock().now());
    resolver_.retryNow();
  }
  uplinkRetryAt_ = uplinks_.wantsRetry() ? host_.clock().now() + kUplinkRetry : kNever;
  if (!uplinks_.hasAlternatives(monitor_.table())) {
    sourcesAt_ = kNever;
  } else if (sourcesAt_ == kNever) {
    sourcesAt_ = host_.clock().now() + kSourcesPause;
  }
}

void Gateway::judgeSources(Time now) {
  sourcesAt_ = now + kSourcesPause;
  std::set<Address::Family> called;
  for (const PeerOptions& peer : resolver_.peers(config_.peers)) {
    for (const Endpoint& e : peer.endpoints) called.insert(e.address.family);
    for (const auto& [uplink, endpoints] : peer.endpointsOver) {
      for (const Endpoint& e : endpoints) called.insert(e.address.family);
    }
  }
  WorkingPaths working = workingPaths(tunnel_, config_.peers, false, now);
  updateUplinks(uplinks_.judgeSources(working.sockets, called, monitor_.table(), now));
}

// An interface may get another name, and an uplink another interface, while the daemon runs.
void Gateway::followLinkNames(Time now) {
  std::vector<std::string> names = knownInterfaces(config_, monitor_.table());
  if (names == std::exchange(linkNames_, names)) return;
  nat_.configureOrWarn(config_, linkNames_);
  if (proxy_) proxy_->setUplinks(linkNames_, now);
}

void Gateway::onNetworkChange() {
  using Kind = NetworkChange::Kind;
  Time now = host_.clock().now();
  for (const NetworkChange& c : monitor_.process(now)) {
    spdlog::debug("{}", c.text);
    // What could not be restored without its interface can be restored once that is up. A new
    // interface has the default setting for forwarding, but an uplink must not forward.
    bool appears = c.kind == Kind::kLinkAdded || c.kind == Kind::kLinkUp;
    if (appears || c.kind == Kind::kLoss || c.kind == Kind::kMtu) reconciler_.suspect(now);
  }
  uplinks_.keepReplies(endangersReplies(config_, monitor_.table()));
  updateUplinks(uplinks_.update(monitor_.table()));
  followLinkNames(now);
  followOwnNetworks(config_);
  followRoutes();
  if (proxy_) proxy_->onChange(now);
}

void Gateway::handleEvents(Time now) {
  Event e;
  size_t polled = 0;
  bool peersChanged = false, initiatorsChanged = false, pathsChanged = false;
  while (tunnel_.pollEvent(e)) {
    ++polled;
    history_.onEvent(e);
    peersChanged |= e.kind == Event::Kind::kPeerUp || e.kind == Event::Kind::kPeerDown;
    initiatorsChanged |= changesInitiators(e.kind);
    if (e.kind == Event::Kind::kSubflowFailed) resolver_.retryLater();
    pathsChanged |= changesPaths(e.kind);
    uint64_t suppressed = 0;
    bool handshake = e.kind == Event::Kind::kHandshakeFailed;
    if (!log_.allow(handshake ? LogKind::kHandshake : LogKind::kSubflow, now, suppressed)) continue;
    std::string who = e.peer.empty() ? std::string() : "peer " + e.peer + ": ";
    spdlog::log(levelOf(e.kind), "{}{}{}", who, e.text, LogLimiter::suffix(suppressed));
  }
  if (initiatorsChanged && proxy_) proxy_->onChange(now);
  if (initiatorsChanged || polled >= EventQueue::kMost) initiators_.onChange(now);
  if (pathsChanged || polled >= EventQueue::kMost) followTunnel(now);
  if (!peersChanged && polled < EventQueue::kMost) return;  // a full queue lost later events
  peersUp_ = tunnel_.peersUp();
  joins_.onPeers(peersUp_);
  if (peersUp_.size() < config_.peers.size()) resolver_.retryLater();
}

std::string Gateway::reload() {
  std::string problems;
  ConfigNode tree;
  ConfigResult result = loadConfig(config_.path, loading_, &tree);
  auto* next = std::get_if<Config>(&result);
  for (const ConfigError& e :
       next ? needsRestart(config_, *next, tree, pool_.payload()) : std::get<ConfigErrors>(result))
    problems += e.toString() + "\n";
  if (problems.empty()) problems = apply(std::move(*next));
  if (!problems.empty()) {
    problems.pop_back();
    spdlog::error("reload: {}; the old configuration stays", problems);
  } else {
    spdlog::info("configuration read again");
    logWarnings(config_);
  }
  return problems;
}

std::string Gateway::apply(Config next) {
  bool newTrace = next.trace != config_.trace;
  UniqueFd traceFile;
  try {
    if (newTrace && !next.trace.empty()) traceFile = openTraceFile(next.trace);
    makeStateFolders(next);
    meters_.setUp(next);
    listeners_.open(next.listen);
    nat_.configure(next, knownInterfaces(next, monitor_.table()));
    applyDevice(next);
  } catch (const std::runtime_error& e) {
    listeners_.keepOnly(config_.listen);
    nat_.configureOrWarn(config_, linkNames_);
    return std::string(e.what()) + "\n";
  }
  listeners_.keepOnly(next.listen);
  const RecoveryOptions& before = config_.tunnel.recoveryOptions;
  RecoveryOptions& after = next.tunnel.recoveryOptions;
  if (before.kMax == after.kMax) {
    after.decodeTime = before.decodeTime;
  } else {
    next = withDecodeTimes(std::move(next), host_.clock());
  }
  config_ = std::move(next);
  linkNames_ = knownInterfaces(config_, monitor_.table());
  if (newTrace) {
    if (std::string problem = trace(std::move(traceFile)); !problem.empty())
      spdlog::error("{}", problem);
  }
  setLogLevel(config_.logLevel);
  tunnel_.setTunables(tunnelOptions());
  updatePeers();
  meters_.keep(config_.uplinks, host_.clock().now());
  configureUplinks();
  updateUplinks(true);
  followRoutes();  // with the marks of the uplinks
  followTunnel(host_.clock().now());
  initiators_.configure(config_, host_.clock().now());
  if (proxy_) configureProxy();
  peersUp_ = tunnel_.peersUp();
  resolveNames(true);
  return {};
}

InviteResult Gateway::invite(const InviteRequest& request) {
  InviteResult out;
  PublicAddresses own = publicAddresses(config_.listen, monitor_.table());
  auto made = joins_.invite(request, std::move(own.addresses));
  if (auto* problem = std::get_if<std::string>(&made)) {
    out.problem = std::move(*problem);
  } else {
    out.line = formatInvitation(std::get<Invitation>(made));
    if (request.addresses.empty()) out.note = std::move(own.note);
    if (std::string left = leftOut(request.networks); !left.empty())
      out.note +=
          (out.note.empty() ? "" : "; ") + left +
          " of that gateway leaves in clear, past the tunnel; '--network 0.0.0.0/0 --network ::/0' "
          "takes both";
  }
  return out;
}

GatewayStatus Gateway::status() const {
  GatewayStatus out;
  out.version = BRAID_VERSION;
  out.config = config_.path;
  out.pin = formatPin(identity_.pin);
  out.device = pump_.device().name();
  out.mode = isTun(config_) ? "tun" : "tap";
  out.uptime = host_.clock().now() - started_;
  out.deviceMtu = device_.mtu();
  out.lostLogLines = lostLogLines();
  out.listen = listeners_.names();
  out.uplinks = uplinks_.status();
  meters_.addTo(out.uplinks);
  resolver_.addTo(out.uplinks);
  out.drops = pump_.drops();
  out.traffic = pump_.traffic();
  out.recovery = config_.tunnel.recoveryOptions;
  if (proxy_) out.streams = proxy_->figures();
  if (trace_) out.trace = trace_->status();
  return out;
}

std::string Gateway::summary() const {
  return std::to_string(peersUp_.size()) + " of " + std::to_string(config_.peers.size()) +
         " peers up";
}

std::string Gateway::trace(UniqueFd file) {
  std::string problem = file ? traceFileProblem(file.get()) : std::string();
  if (!problem.empty()) return "cannot write the trace: " + problem;
  if (trace_) {
    tunnel_.setTrace(nullptr);
    trace_.reset();
    spdlog::info("recovery trace off");
  }
  if (!file) return {};
  try {
    trace_ = std::make_unique<TraceWriter>(std::move(file), host_.clock().now());
  } catch (const std::system_error& e) {
    return std::string("the system gives no thread for the trace: ") + e.what();
  }
  tunnel_.setTrace(trace_.get());
  spdlog::info("recovery trace on");
  return {};
}

}  // namespace braid
