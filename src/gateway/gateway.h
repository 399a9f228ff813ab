#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/caller_keeper.h"
#include "gateway/change_keeper.h"
#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/device_keeper.h"
#include "gateway/dtls/dtls.h"
#include "gateway/dtls/identity.h"
#include "gateway/history_keeper.h"
#include "gateway/join_keeper.h"
#include "gateway/listeners.h"
#include "gateway/log.h"
#include "gateway/meter_keeper.h"
#include "gateway/name_keeper.h"
#include "gateway/packet_pump.h"
#include "gateway/router_keeper.h"
#include "gateway/streams.h"
#include "gateway/trace_writer.h"
#include "gateway/uplink.h"
#include "host/host.h"
#include "tunnel/tunnel.h"

namespace braid {

/// One gateway on a host: carries a configuration out and moves packets. The host calls back when there is
/// something to take in; whoever runs the gateway calls turn() after that, and at nextDeadline() at the
/// latest.
class Gateway {
 public:
  /// Sets everything up. Throws std::runtime_error with a remedy; undo what was done at the host by
  /// HostNetwork::undo(). `host` must outlive the gateway.
  Gateway(Config config, LoadOptions loading, Host& host);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// Begins what takes threads: names are resolved, the configured trace is written. Call once, after
  /// privileges were dropped. Throws std::runtime_error with a remedy.
  void start();
  /// Does what is due and sends what is ready. True: there is more; call again at once.
  bool turn();
  Time nextDeadline() const;
  /// The device is gone: the gateway cannot go on.
  bool failed() const { return pump_.device().gone(); }
  /// Says farewell to the peers and leaves the host as it was.
  void stop();

  /// Reads the configuration file again. Gives what is wrong with the file (several lines); empty: the new
  /// configuration holds now.
  std::string reload();
  /// Writes the recovery trace to this file from now on; with a `file` that owns nothing, ends the trace. Gives
  /// what is wrong with the file; empty: done.
  std::string trace(UniqueFd file);
  /// Makes an invitation for another gateway.
  InviteResult invite(const InviteRequest& request);

  const Config& config() const { return config_; }
  /// `flows`: how many inner flows to list.
  TunnelStatus tunnelStatus(size_t flows = 0) const { return tunnel_.status(clock_.now(), flows); }
  /// For whoever takes the peers one by one.
  TunnelStatus wholeTunnelStatus() const { return tunnel_.wholeStatus(); }
  std::vector<std::string> peerNames() const { return tunnel_.peerNames(); }
  /// nullopt: there are not so many.
  std::optional<PeerStatus> peerStatus(size_t place, size_t flows) const {
    if (place >= tunnel_.peerCount()) return std::nullopt;
    return tunnel_.peerStatus(place, clock_.now(), flows);
  }
  /// Of a peer's paths.
  PeerLoadTest& loadTest() { return tunnel_.loadTest(); }
  /// What happened in the last hour.
  const History& history() const { return history_.history(); }
  /// All but the process's number.
  GatewayStatus status() const;
  size_t peersUp() const { return peersUp_.size(); }
  /// "1 of 2 peers up"
  std::string summary() const;

 private:
  /// Gives what is wrong with the configuration, one line each; empty: it holds now.
  std::string apply(Config next);
  void applyDevice(const DeviceConfig& device);
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
  std::string startTrace(UniqueFd file);
  void endTrace();

  Host& host_;
  const Clock& clock_;
  Config config_;
  LoadOptions loading_;
  Time started_;
  Identity identity_;
  PacketPool pool_;
  DtlsProvider handshakes_;
  std::unique_ptr<TraceWriter> trace_;  ///< null: off
  Tunnel tunnel_;
  LogLimiter log_;
  PacketPump pump_;
  HostNetwork& network_;
  NetworkMonitor& monitor_;
  SocketIds ids_;
  DeviceKeeper device_;
  RouterKeeper router_;
  ChangeKeeper changes_;
  Listeners listeners_;
  CallerKeeper callers_;
  JoinKeeper joins_;
  MeterKeeper meters_;
  Uplinks uplinks_;
  std::unique_ptr<Streams> streams_;  ///< null: there are none
  HistoryKeeper history_;
  Time uplinkRetry_ = kNever;
  Time shrink_ = kNever;  ///< packet buffers that are spare until then are given back
  NameKeeper names_;
  std::set<std::string> peersUp_;
};

}  // namespace braid
