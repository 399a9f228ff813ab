#pragma once

// One gateway on a host: puts a configuration into effect there, and moves packets. It is the only
// place where the tunnel (tunnel/tunnel.h, which does no I/O) meets the operating system (Host).
//
//     hosts of the LAN -- TUN/TAP device -- PacketPump -- Tunnel -- PacketPump -- UDP sockets
//     TCP connections carried as streams -- TcpProxy -- Tunnel::streams()
//
// The other members each follow one kind of change and pass it to tunnel or host: Uplinks (the
// host's interfaces), PeerResolver (DNS), TunnelSteering (routes, guard, NAT), and so on. When each
// of them is called, and in which order, is in gateway.cc alone (onTimers()).
//
// Daemon owns the gateway of a process; `braidctl doctor` makes one for a few seconds to try the
// paths. The owner runs the event loop, from which the Host calls members back when there is input:
// PacketPump gives a bounded batch of a socket's datagrams to the tunnel at once, and changes of
// the network go to the uplinks at once. All else, so reading the device and all sending, is in
// runOnce().
//
// Life, all in one thread:
//
//     Gateway()       changes the host: device, addresses, routes, NAT, sockets. As root, or with
//                     the capabilities for it
//     start()         after the process has dropped privileges it no longer needs
//     runOnce() ...   after each turn of the event loop, and at nextDeadline() at the latest. In
//                     between: reload(), trace(), invite(), drain(), as the operator asks for them
//     stop()          undoes the changes to the host. Only the destructor may follow
//
// An error is reported in one of three ways. The constructor and start() throw
// std::runtime_error, whose text says what the operator can do; the owner then ends. reload(),
// trace() and invite() return text, and the gateway goes on as before. Whatever else fails at run
// time is logged and, where that helps, tried again; only the loss of the device ends the gateway
// (failed()).

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/captive_portals.h"
#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/dtls/dtls.h"
#include "gateway/dtls/identity.h"
#include "gateway/join_service.h"
#include "gateway/log/log.h"
#include "gateway/log/trace_writer.h"
#include "gateway/network/tunnel_steering.h"
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

class Gateway {
 public:
  /// Sets everything up with `config`, which has been checked. `loading`: how reload() is to read
  /// the file again. When this or start() throws, stop() must not be called: Host::network() undoes
  /// the changes when it is destroyed. `host` must outlive the gateway.
  Gateway(Config config, LoadOptions loading, Host& host);
  /// Does not undo the changes to the host: see stop().
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // ---- called by the event loop

  /// Starts what needs threads: the lookup of peers' names, and the trace that is configured.
  void start();
  /// Does what is due. Moves a bounded batch of packets from the device to the tunnel, and of what
  /// the tunnel has ready to sockets and device; the same for streams. Returns true when more is
  /// left: call it again without waiting for input, after a look at other events.
  bool runOnce();
  /// When to call runOnce() although nothing happens; a time in the past: now.
  Time nextDeadline() const;
  /// The TUN/TAP device was deleted: no packet can be carried any more. Call stop() then.
  bool failed() const { return pump_.device().gone(); }
  /// Sends CLOSE to the peers before it returns, saves the state that outlives the process, and
  /// restores the host's settings. What cannot be restored is logged.
  void stop();

  // ---- called for the operator (signals, control socket)

  /// Reads the configuration file again and puts it into effect. Returns what is wrong with it, one
  /// line for each problem; the old configuration then stays. Empty: the new one is in effect.
  /// Settings that need a restart count as wrong when they have changed.
  std::string reload();
  /// Writes the recovery trace (TraceWriter: losses, copies, parities) to this file from now on,
  /// instead of the file before. A `file` without a descriptor ends the trace. Returns why the file
  /// cannot take a trace; empty: done.
  std::string trace(UniqueFd file);
  /// Creates an invitation, with which another gateway can make itself a peer of this one
  /// (JoinService). InviteResult::problem says why not.
  InviteResult invite(const InviteRequest& request);
  /// Prepares a restart: see TcpProxy::drain(). Returns how many streams are open.
  uint64_t drain(Duration time);

  /// The configuration in effect.
  const Config& config() const { return config_; }
  /// To ask for its state, and for load tests. Only PacketPump may give it packets and datagrams or
  /// poll them.
  Tunnel& tunnel() { return tunnel_; }
  /// `flows`: how many inner flows to list, of all peers together.
  TunnelStatus tunnelStatus(size_t flows = 0) const {
    return tunnel_.status(host_.clock().now(), flows);
  }
  /// What happened in the last hour, in steps of 10 s.
  const History& history() const { return history_.history(); }
  /// Everything except the process id, which is the owner's.
  GatewayStatus status() const;
  /// Peers that are up (Peer::isUp()), as of the last runOnce().
  size_t peersUp() const { return peersUp_.size(); }
  /// "1 of 2 peers up"
  std::string summary() const;

 private:
  /// Puts one fragment into effect, or takes it away (no text), and nothing else that was edited
  /// since the configuration was read. Returns what is wrong; empty: nothing.
  std::string applyFragment(const std::string& file, const std::optional<std::string>& text);
  /// As reload(), which has read and checked `next`. Each line ends with '\n'.
  std::string apply(Config next);
  /// TunnelSteering::turn(), whose event is announced.
  void followTunnel(Time now);
  void leaveSessions(const std::string& why, Time now);
  void removeStale();
  void openProxy();
  void takeFromProxy(Time now);
  void configureUplinks();
  TunnelOptions tunnelOptions() const;
  void updatePeers();
  void resolveNames(bool all);
  void judgeSources(Time now);
  /// `changed`: the tunnel must be told of the uplinks.
  void updateUplinks(bool changed);
  void onNetworkChange();
  void onTimers(Time now);
  void handleEvents(Time now);

  // Later members refer to earlier ones, so the order matters.
  Host& host_;
  Config config_;
  LoadOptions loading_;
  HostNumbers numbers_;
  Time started_;
  Identity identity_;
  PacketPool pool_;                     ///< buffers of all packets in the process
  DtlsProvider handshakes_;             ///< the tunnel's handshakes
  std::unique_ptr<TraceWriter> trace_;  ///< nullptr: off
  Tunnel tunnel_;
  LogLimiter log_;                   ///< limits how often similar lines are logged
  PacketPump pump_;                  ///< has the device and all sockets
  NetworkMonitor& monitor_;          ///< the host's interfaces, addresses and routes
  SocketIds socketIds_;              ///< ids for the sockets of listeners and uplinks
  TunnelSteering steering_;          ///< what of the host's packets comes into the tunnel
  Listeners listeners_;              ///< sockets on which peers connect
  InitiatorTracker initiators_;      ///< file of the peers to notify after a restart (peer.h)
  JoinService joins_;                ///< invitations, and the gateways that use them
  MeterTracker meters_;              ///< file of the bytes counted on metered uplinks
  Uplinks uplinks_;                  ///< sockets and source routes of the configured uplinks
  std::unique_ptr<TcpProxy> proxy_;  ///< nullptr: streams are off, or the host cannot do them
  HistoryRecorder history_;
  Time uplinkRetryAt_ = kNever;  ///< when sockets and routes that the host refused are retried
  Time sourcesAt_ = kNever;      ///< when the uplinks' addresses are judged again
  Time shrinkAt_ = kNever;       ///< when spare packet buffers are freed; kNever: there are none
  PeerResolver resolver_;
  CaptivePortals portals_;
  std::set<std::string> peersUp_;  ///< names
};

}  // namespace braid
