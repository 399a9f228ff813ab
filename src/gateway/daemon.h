#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/control/control.h"
#include "gateway/device.h"
#include "gateway/dtls/dtls.h"
#include "gateway/dtls/identity.h"
#include "gateway/log.h"
#include "gateway/loop.h"
#include "gateway/meter_book.h"
#include "gateway/netlink_config.h"
#include "gateway/netlink_monitor.h"
#include "gateway/resolver.h"
#include "gateway/socket_table.h"
#include "gateway/trace_writer.h"
#include "gateway/uplink.h"
#include "tunnel/tunnel.h"

namespace braid {

/// What differs between two configurations and needs a restart, one line each ("device.name: ..."); empty: a
/// reload will do. `bufferSize`: bytes that a packet buffer holds.
std::vector<std::string> needsRestart(const Config& before, const Config& after, size_t bufferSize);

/// Measures how long decoding takes on this machine, for the tunnel's recovery options.
Config withDecodeTimes(Config config);

/// Header of a frame with a VLAN tag, which device.mtu does not count.
inline constexpr size_t kTaggedEthernetHeader = 18;

/// One gateway: joins the tunnel to device, sockets, clock, service manager and log. Everything runs on one
/// loop.
class Daemon : private SendObserver, private ControlHandler {
 public:
  /// Sets everything up. Throws std::runtime_error with a remedy; the host is then as it was.
  Daemon(Config config, LoadOptions loading);
  ~Daemon() override;

  /// Works until SIGTERM or SIGINT, then gives true; false when it cannot go on.
  bool run();

 private:
  struct Listener {
    Endpoint endpoint;
    SocketId id;
  };

  // daemon.cc: start, loop, end
  void onDeviceReadable();
  void onNetlink();
  void beforeWait();
  bool sendDatagrams(Time now);
  bool deliverPackets();
  void logEvents(Time now);
  void stop();
  void drainOutput();

  // daemon_meters.cc: metered uplinks
  void setUpMeters(const Config& config);
  std::vector<UplinkSpec> uplinkSpecs() const;
  void keepMeters();
  void saveMeters();
  void endMeters();
  void addMeters(std::vector<UplinkStatus>& uplinks) const;

  // daemon_setup.cc: what a configuration asks for
  /// Gives what is wrong, one line each; empty: it holds now.
  std::string apply(Config next);
  void setUpDevice(const DeviceConfig& before, const DeviceConfig& after);
  void setUpListeners(const std::vector<Endpoint>& endpoints);
  void setUpPeers();
  size_t wantedDeviceMtu() const;
  void followDeviceMtu();
  void updateUplinks(bool changed);
  void resolveNames(bool all);
  void onResolved(const HostPort& name, const std::vector<Endpoint>& found);
  void warn(LogKind kind, Time now, const std::string& line);
  std::string summary() const;

  void onSendError(const Route& route, int error) override;
  void onTooBig(const Route& route, size_t size, bool mtuProbe) override;

  TunnelStatus tunnelStatus() override;
  GatewayStatus gatewayStatus() override;
  HostDrops hostDrops() const;
  std::string reload() override;
  std::string trace(UniqueFd file) override;
  std::string startTrace(UniqueFd file);
  void endTrace();

  Config config_;
  LoadOptions loading_;
  Time started_;
  Identity identity_;
  PacketPool pool_;
  DtlsProvider handshakes_;
  std::unique_ptr<TraceWriter> trace_;  ///< null: off
  Tunnel tunnel_;
  Loop loop_;
  Device device_;
  NetlinkConfig host_;
  NetlinkMonitor monitor_;
  SocketIds ids_;
  SocketTable sockets_;
  std::optional<MeterBook> meters_;  ///< from the first metered uplink on
  Uplinks uplinks_;
  std::vector<Listener> listeners_;
  Resolver resolver_;
  LogLimiter limiter_;
  bool failed_ = false;
  size_t deviceMtu_ = 0;
  std::map<HostPort, std::vector<Endpoint>> resolved_;
  std::set<std::string> peersUp_;
  std::unique_ptr<ControlServer> control_;

  IoWatcher deviceWatcher_;
  IoWatcher netlinkWatcher_;
  Timer tunnelTimer_;
  Timer retryTimer_;
  Timer nameTimer_;
  Timer meterTimer_;
  Timer watchdogTimer_;
  SignalWatcher term_, interrupt_, hangup_;
  PrepareHook prepare_;
};

}  // namespace braid
