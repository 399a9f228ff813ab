#include "gateway/trial.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <sstream>
#include <utility>

#include "gateway/control/status_json.h"
#include "gateway/gateway.h"
#include "host/linux/linux_host.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr Duration kLongest = 14s;  // a handshake gives up after 10 s
constexpr Duration kSizing = 4s;    // to find the size of a path, once it answers
constexpr uint64_t kWholePath = 1343;

// A device without packets.
class Nothing final : public TunDevice {
 public:
  explicit Nothing(const std::string& name) { name_ = name; }
  size_t read(PacketPool&, size_t, const Sink&) override { return 0; }
  void write(Packet) override {}
  void flush() override {}
};

// This machine as the host of a gateway that only tries the paths to its peers. Sockets are real,
// but nothing of the host is changed. No packet comes from its device.
class TrialHost final : public LinuxHost {
 public:
  using LinuxHost::LinuxHost;

  std::unique_ptr<TunDevice> openDevice(const DeviceOptions& options, Callback) override {
    return std::make_unique<Nothing>(options.name);
  }
  std::unique_ptr<StreamHost> openStreams(const std::string&, StreamObserver&) override {
    throw SystemError(EOPNOTSUPP, "no streams while paths are tried");
  }
  std::unique_ptr<Translator> openTranslator(const std::string&) override {
    throw SystemError(EOPNOTSUPP, "no address translation while paths are tried");
  }
  std::unique_ptr<PacketFilter> openFilter(const std::string&) override {
    return std::make_unique<NoFilter>();
  }
  unsigned slot() override { return 0; }
  HostNetwork& network() override { return unchanged_; }

 private:
  // The filter and the network of this host ignore every change.
  class NoFilter final : public PacketFilter {
   public:
    void set(const FilterRules&) override {}
    bool isIntact() override { return true; }
  };
  class Unchanged final : public HostNetwork {
   public:
    void setLinkUp(const std::string&) override {}
    void setMtu(const std::string&, uint32_t) override {}
    void addAddress(const std::string&, const InterfaceAddress&) override {}
    void removeAddress(const std::string&, const InterfaceAddress&) override {}
    void setMaster(const std::string&, const std::string&) override {}
    void addRoute(const RouteSpec&) override {}
    void addRule(const RuleSpec&) override {}
    void removeRoute(const RouteSpec&) override {}
    void removeRule(const RuleSpec&) override {}
    void removeStaleRoutes(uint32_t) override {}
    void removeStaleRules(uint32_t, uint32_t) override {}
    void removeStaleTables(uint32_t, uint32_t) override {}
    bool hasOtherRule(uint32_t, uint32_t) override { return false; }
    std::vector<Prefix> networksElsewhere(const std::string&) override { return {}; }
    void setForwarding(Address::Family, const std::vector<std::string>&,
                       const std::string&) override {}
    bool forwards(Address::Family, const std::string&) override { return true; }
    void removeForwarding(Address::Family) override {}
    std::string forwardingBefore(Address::Family) override { return {}; }
    Restored restore() override { return {}; }
    std::vector<std::string> undo() override { return {}; }
  };

  Unchanged unchanged_;
};

bool hasEndpoint(const PeerConfig& peer) {
  return !peer.options.endpoints.empty() || !peer.hosts.empty();
}

// Reduces the configuration to one of a gateway that connects to its peers and does nothing else.
// Returns the names of the uplinks that it takes out.
std::vector<std::string> reduce(Config& config) {
  config.listen.clear();
  config.trace.clear();
  config.tunnel.streams.on = false;
  config.router = {};
  config.device.whenDown = DeviceConfig::WhenDown::kUnset;
  std::erase_if(config.peers, [](const PeerConfig& p) { return !hasEndpoint(p); });
  std::vector<std::string> leftOut;
  NetworkTable table = NetlinkMonitor().table();
  std::erase_if(config.uplinks, [&](const UplinkConfig& u) {
    const Link* link = table.find(u.selector());
    bool own = link && table.hasDefaultRoute(link->index, Address::Family::kV4);
    if (u.gateway != UplinkConfig::Gateway::kAddress || own) return false;
    leftOut.push_back(u.name);
    return true;
  });
  for (UplinkConfig& u : config.uplinks) {
    u.meter.reset();
    if (u.gateway == UplinkConfig::Gateway::kAddress) u.gateway = UplinkConfig::Gateway::kAuto;
  }
  return leftOut;
}

// Tells when waiting would give no new results.
class Settled {
 public:
  bool isNow(const Gateway& gateway, Time now) {
    TunnelStatus status = gateway.tunnelStatus();
    bool answered = std::all_of(status.peers.begin(), status.peers.end(), [](const PeerStatus& p) {
      return p.up && std::all_of(p.subflows.begin(), p.subflows.end(),
                                 [](const SubflowStatus& s) { return s.state == "active"; });
    });
    if (!answered) return since_ = kNever, false;
    if (since_ == kNever) since_ = now;
    bool sized = std::all_of(status.peers.begin(), status.peers.end(), [](const PeerStatus& p) {
      return std::all_of(p.subflows.begin(), p.subflows.end(),
                         [](const SubflowStatus& s) { return s.mtu >= kWholePath; });
    });
    return sized || now - since_ >= kSizing;
  }

 private:
  Time since_ = kNever;
};

// Collects the log in `lines_` while it exists.
class LogKeeper {
 public:
  LogKeeper() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_);
    auto logger = std::make_shared<spdlog::logger>("trial", sink);
    logger->set_pattern("%v");
    logger->set_level(spdlog::level::warn);
    spdlog::set_default_logger(logger);
  }
  ~LogKeeper() { spdlog::set_default_logger(before_); }
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;
  nlohmann::json lines() const {
    nlohmann::json out = nlohmann::json::array();
    std::istringstream all(lines_.str());
    for (std::string line; std::getline(all, line);) out.push_back(line);
    return out;
  }

 private:
  std::ostringstream lines_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace

nlohmann::json tryPaths(Config config) {
  std::vector<std::string> leftOut = reduce(config);
  if (config.peers.empty() || config.uplinks.empty())
    return nlohmann::json::object({{"left_out", leftOut}});
  LogKeeper log;
  Loop loop;
  TrialHost host(loop);
  Gateway gateway(std::move(config), {}, host);
  gateway.start();
  Time end = monotonicNow() + kLongest;
  Settled settled;
  Timer timer(loop, [] {});
  PrepareHook prepare(loop, [&] {
    bool more = gateway.runOnce();
    Time now = monotonicNow();
    if (settled.isNow(gateway, now) || now >= end) return loop.stop();
    timer.arm(std::min({gateway.nextDeadline(), end, now + 100ms}));
    prepare.keepAwake(more);
  });
  loop.run();
  nlohmann::json out{{"status", statusJson(gateway.status(), gateway.tunnelStatus())},
                     {"history", historyObject(gateway.history()).whole()},
                     {"warnings", log.lines()},
                     {"left_out", leftOut}};
  gateway.stop();
  return out;
}

}  // namespace braid
