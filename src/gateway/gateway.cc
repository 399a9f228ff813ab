#include "gateway/gateway.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>

#include "gateway/config/settings.h"
#include "gateway/decode_time.h"
#include "gateway/events.h"
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

// Creates the folders for what is kept over a restart: counts of the uplinks, the initiators of a
// gateway that listens, and invitations. A host that cannot have such a folder still carries
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
  // What else is counted is of less worth; MeterTracker says when it cannot be kept.
  if (folders.empty() && !config.uplinks.empty() && !config.state.empty())
    (void)makeOwnFolder(std::filesystem::path(config.state).parent_path());
}

void logWarnings(const Config& config) {
  for (const ConfigError& warning : config.warnings) spdlog::warn("{}", warning.toString());
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
      steering_(host, monitor_, tunnel_, config_, log_, pump_.device().name(), numbers_,
                [this] {
                  return TunnelSteering::Needs{uplinks_.replyMarks(), resolver_.asksHere()};
                }),
      listeners_(pump_.sockets(), socketIds_),
      initiators_(tunnel_, listeners_, log_),
      joins_(
          config_, identity_.pin, log_,
          {[this](const std::string& file, const auto& text) { return applyFragment(file, text); },
           [this] { return unappliedEdits(config_, loading_); }, [] { return std::time(nullptr); },
           [this] {
             return networksOfHost(monitor_.table(), host_.network(), pump_.device().name());
           }}),
      meters_(tunnel_, log_),
      uplinks_(pump_.sockets(), host_.network(), socketIds_, numbers_),
      history_(
          tunnel_, [this] { return status(); }, started_),
      resolver_(host, log_,
                [this] {
                  updatePeers();
                  portals_.follow();
                  steering_.follow();
                }),
      portals_({host, monitor_, tunnel_, uplinks_, resolver_, config_, log_, history_},
               pump_.device().name(), numbers_) {
  Time now = host_.clock().now();
  loading_.ownPin = identity_.pin;
  makeStateFolders(config_);
  steering_.followMtu(now);
  steering_.apply(config_);
  listeners_.open(config_.listen);
  tunnel_.setListening(!config_.listen.empty());
  updatePeers();
  meters_.setUp(config_);
  meters_.keep(config_.uplinks, now);
  removeStale();
  configureUplinks();
  openProxy();
  updateUplinks(true);
  steering_.follow();  // with the marks of the uplinks
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
  if (std::optional<std::string> why = host_.takeBreak()) leaveSessions(*why, now);
  onTimers(now);
  bool more = proxy_ && proxy_->turn(now);
  takeFromProxy(now);
  more |= pump_.turn(now);
  // Packets that were just sent may have made room for more. What the streams add now is sent in
  // the next turn.
  if (proxy_) more |= proxy_->turn(now) || proxy_->hasActed();
  handleEvents(now);
  steering_.followMtu(now);
  if (shrinkAt_ == kNever && pool_.hasSpare()) shrinkAt_ = now + kShrinkAfter;
  return more;
}

Time Gateway::nextDeadline() const {
  return std::min({tunnel_.nextDeadline(), uplinkRetryAt_, sourcesAt_, steering_.deadline(),
                   shrinkAt_, monitor_.deadline(), resolver_.deadline(), meters_.deadline(),
                   initiators_.deadline(), joins_.deadline(), history_.deadline(),
                   portals_.deadline(), proxy_ ? proxy_->deadline() : kNever});
}

// Where this process goes on twice, both copies would seal different packets under the same nonces.
// The copies must share neither keys nor random numbers from now on.
void Gateway::leaveSessions(const std::string& why, Time now) {
  spdlog::warn("{}: all sessions end, and new ones begin", why);
  renewOpensslRandomness(host_.randomKey());
  tunnel_.forgetKeys(why, host_.randomKey(), now);
}

void Gateway::onTimers(Time now) {
  if (monitor_.deadline() <= now) onNetworkChange();
  if (steering_.deadline() <= now) followTunnel(now);
  if (uplinkRetryAt_ <= now) {
    bool changed = uplinks_.update(monitor_.table());
    uplinks_.warn();
    updateUplinks(changed);
  }
  if (sourcesAt_ <= now) judgeSources(now);
  if (resolver_.deadline() <= now) resolveNames(false);  // a working path keeps its addresses
  portals_.turn(now);
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
  portals_.stop();
  uplinks_.close();
  steering_.stop();
  for (const std::string& line : host_.network().undo()) spdlog::warn("{}", line);
}

void Gateway::followTunnel(Time now) {
  if (std::optional<Event> change = steering_.turn(now)) announce(*change, history_);
}

// Removes what a killed daemon left, whether this one needs the like or not: it may have had
// another configuration.
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
    proxy_ = std::make_unique<TcpProxy>(host_, monitor_, pump_.device().name(), tunnel_.streams(),
                                        pool_, log_);
    proxy_->configure(config_, steering_.names(), numbers_, host_.clock().now());
    pump_.setFilter([this](Packet& packet, Time now) { return proxy_->onPacket(packet, now); });
  } catch (const SystemError& e) {
    spdlog::warn("no streams: {}; all connections are carried as packets", e.what());
    proxy_.reset();
  }
  tunnel_.setTunables(tunnelOptions());
}

// Takes the answers to hosts whose connections are not accepted, and packets that are not to become
// streams.
void Gateway::takeFromProxy(Time now) {
  if (!proxy_) return;
  while (std::optional<PendingConnects::Output> out = proxy_->pollPacket()) {
    if (out->way == PendingConnects::Way::kTunnel) {
      pump_.toTunnel(std::move(out->packet), now);
    } else {
      pump_.toDevice(std::move(out->packet));
    }
  }
}

// A new session's peer is told of at most as many streams as this gateway can have connections,
// because further ones would be reset.
TunnelOptions Gateway::tunnelOptions() const {
  TunnelOptions out = config_.tunnel;
  out.streams.on &= proxy_ != nullptr;
  if (proxy_) out.streams.most = std::min(out.streams.most, proxy_->most(config_));
  return out;
}

void Gateway::configureUplinks() {
  uplinks_.keepReplies(endangersReplies(config_, monitor_.table()));
  uplinks_.configure(config_.uplinks, monitor_.table());
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
    portals_.follow();
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

void Gateway::onNetworkChange() {
  using Kind = NetworkChange::Kind;
  Time now = host_.clock().now();
  bool isLoss = false;
  for (const NetworkChange& c : monitor_.process(now)) {
    spdlog::debug("{}", c.text);
    // What could not be restored without its interface can be restored once that is up. A new
    // interface has the default setting for forwarding, but an uplink must not forward.
    isLoss |= c.kind == Kind::kLinkAdded || c.kind == Kind::kLinkUp || c.kind == Kind::kLoss ||
              c.kind == Kind::kMtu;
  }
  uplinks_.keepReplies(endangersReplies(config_, monitor_.table()));
  updateUplinks(uplinks_.update(monitor_.table()));
  portals_.onNetworkChange();
  bool isNamedAnew = steering_.onNetworkChange(isLoss, now);
  if (!proxy_) return;
  if (isNamedAnew) proxy_->setUplinks(steering_.names());
  proxy_->onChange(now);
}

void Gateway::handleEvents(Time now) {
  const EventChanges changes = takeEvents(tunnel_, history_, log_, now);
  if (changes.failures) resolver_.retryLater();
  if (changes.initiators && proxy_) proxy_->onChange(now);
  if (changes.initiators) initiators_.onChange(now);
  if (changes.paths) {
    followTunnel(now);
    portals_.follow();
  }
  if (!changes.peers) return;
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

std::string Gateway::applyFragment(const std::string& file,
                                   const std::optional<std::string>& text) {
  ConfigResult result = withFragment(config_, file, text, loading_);
  if (auto* errors = std::get_if<ConfigErrors>(&result)) return errors->front().toString();
  return apply(std::get<Config>(std::move(result)));
}

std::string Gateway::apply(Config next) {
  bool newTrace = next.trace != config_.trace;
  UniqueFd traceFile;
  try {
    if (newTrace && !next.trace.empty()) traceFile = openTraceFile(next.trace);
    makeStateFolders(next);
    meters_.setUp(next);
    listeners_.open(next.listen);
    steering_.apply(next);
  } catch (const std::runtime_error& e) {
    listeners_.keepOnly(config_.listen);
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
  if (newTrace) {
    if (std::string problem = trace(std::move(traceFile)); !problem.empty())
      spdlog::error("{}", problem);
  }
  setLogLevel(config_.logLevel);
  tunnel_.setListening(!config_.listen.empty());
  tunnel_.setTunables(tunnelOptions());
  updatePeers();
  meters_.keep(config_.uplinks, host_.clock().now());
  configureUplinks();
  updateUplinks(true);
  steering_.follow();  // with the marks of the uplinks
  followTunnel(host_.clock().now());
  initiators_.configure(config_, host_.clock().now());
  if (proxy_) proxy_->configure(config_, steering_.names(), numbers_, host_.clock().now());
  peersUp_ = tunnel_.peersUp();
  history_.onReload();
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
    if (const std::string more = joins_.notesOn(request); !more.empty())
      out.note += (out.note.empty() ? "" : "; ") + more;
  }
  return out;
}

uint64_t Gateway::drain(Duration time) {
  if (!proxy_) return 0;
  const Time now = host_.clock().now();
  proxy_->drain(now + time, now);
  return proxy_->figures().open;
}

GatewayStatus Gateway::status() const {
  GatewayStatus out;
  out.version = BRAID_VERSION;
  out.config = config_.path;
  out.pin = formatPin(identity_.pin);
  out.device = pump_.device().name();
  out.mode = isTun(config_) ? "tun" : "tap";
  out.uptime = host_.clock().now() - started_;
  out.deviceMtu = steering_.mtu();
  out.lostLogLines = lostLogLines();
  out.listen = listeners_.names();
  out.uplinks = uplinks_.status();
  meters_.addTo(out.uplinks);
  history_.availability().addTo(out.uplinks);
  resolver_.addTo(out.uplinks);
  portals_.addTo(out.uplinks);
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
