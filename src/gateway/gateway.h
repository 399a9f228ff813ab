#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/dtls/dtls.h"
#include "gateway/dtls/identity.h"
#include "gateway/join_service.h"
#include "gateway/log/log.h"
#include "gateway/log/trace_writer.h"
#include "gateway/network/device_configurator.h"
#include "gateway/network/nat_manager.h"
#include "gateway/network/network_reconciler.h"
#include "gateway/network/tunnel_routes.h"
#include "gateway/network/tunnel_watch.h"
#include "gateway/proxy/tcp_proxy.h"
#include "gateway/state/history_recorder.h"
#include "gateway/state/initiators.h"
#include "gateway/state/meters.h"
#include "gateway/uplinks/listeners.h"
#include "gateway/uplinks/packet_pump.h"
#include "gateway/uplinks/peer_resolver.h"
#include "gateway/uplinks/uplink.h"
#include "host/host.h"
#include "tunnel/tunnel.h"

namespace braid {

/// One gateway on a host: puts a configuration into effect and moves packets. The host calls back
/// when there is input. After each such callback, and at nextDeadline() at the latest, the owner of
/// the gateway calls turn().
class Gateway {
 public:
  /// Sets everything up. Throws std::runtime_error with a remedy; HostNetwork::undo() then reverts
  /// what was changed at the host. `host` must outlive the gateway.
  Gateway(Config config, LoadOptions loading, Host& host);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// Starts what needs threads: name resolution and the configured trace. Call once, after
  /// privileges were dropped. Throws std::runtime_error with a remedy.
  void start();
  /// Does what is due and sends what is ready. Returns true when more is left: call again at once.
  bool turn();
  Time nextDeadline() const;
  /// The TUN/TAP device is gone: the gateway cannot continue.
  bool failed() const { return pump_.device().gone(); }
  /// Tells the peers that this gateway leaves, and restores the host's settings.
  void stop();

  /// Reads the configuration file again. Returns what is wrong with the file (several lines);
  /// empty: the new configuration is in effect.
  std::string reload();
  /// Writes the recovery trace to this file from now on. A `file` without a descriptor ends the
  /// trace. Returns what is wrong with the file; empty: done.
  std::string trace(UniqueFd file);
  /// Creates an invitation for another gateway.
  InviteResult invite(const InviteRequest& request);

  const Config& config() const { return config_; }
  Tunnel& tunnel() { return tunnel_; }
  /// `flows`: how many inner flows to list.
  TunnelStatus tunnelStatus(size_t flows = 0) const {
    return tunnel_.status(host_.clock().now(), flows);
  }
  /// What happened in the last hour.
  const History& history() const { return history_.history(); }
  /// Everything except the process id.
  GatewayStatus status() const;
  size_t peersUp() const { return peersUp_.size(); }
  /// "1 of 2 peers up"
  std::string summary() const;

 private:
  /// Returns what is wrong with the configuration, one line each; empty: it is in effect.
  std::string apply(Config next);
  void applyDevice(const Config& config);
  /// Gives the uplinks and the routes into the tunnel what they depend on: configuration, host and
  /// peers. Throws SystemError; the earlier routes then stay.
  void applyRoutes(const Config& config);
  /// Like applyRoutes() for the present configuration; what the host refuses is logged, and tried
  /// again.
  void followRoutes();
  /// Follows whether the tunnel carries packets, and announces what `when-down: direct` makes of
  /// it.
  void followTunnel(Time now);
  void removeStaleRules();
  void openStreams();
  TunnelOptions tunables() const;
  void configureStreams();
  void updatePeers();
  void updateUplinks(bool changed);
  void onNetworkChange();
  void onTimers(Time now);
  void followMtu(Time now);
  void logEvents(Time now);

  Host& host_;
  Config config_;
  LoadOptions loading_;
  HostNumbers numbers_;
  Time started_;
  Identity identity_;
  PacketPool pool_;
  DtlsProvider handshakes_;
  std::unique_ptr<TraceWriter> trace_;  ///< null: off
  Tunnel tunnel_;
  LogLimiter log_;
  PacketPump pump_;
  NetworkMonitor& monitor_;
  SocketIds ids_;
  DeviceConfigurator device_;
  TunnelRoutes routes_;
  NatManager router_;
  NetworkReconciler changes_;
  Listeners listeners_;
  InitiatorTracker initiators_;
  JoinService joins_;
  MeterTracker meters_;
  Uplinks uplinks_;
  std::unique_ptr<TcpProxy> streams_;  ///< null: streams are off
  HistoryRecorder history_;
  Time uplinkRetry_ = kNever;
  Time routesRetry_ = kNever;
  TunnelWatch watch_;
  Time shrink_ = kNever;  ///< when spare packet buffers are freed; kNever: there are none
  PeerResolver names_;
  std::set<std::string> peersUp_;
};

}  // namespace braid
