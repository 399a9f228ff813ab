#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gateway/control/gateway_status.h"
#include "gateway/log/log.h"
#include "gateway/uplinks/socket_table.h"
#include "host/host.h"
#include "host/run_damage.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Carries packets between device and tunnel, and datagrams between sockets and tunnel, in bounded
/// batches. The packets of a batch of datagrams are written to the device before the next batch is
/// read. A datagram may hold tens of packets; without this rule, a peer that sends such datagrams
/// could fill the memory with packets that wait for the device.
class PacketPump : private SendObserver {
 public:
  /// Opens the device; throws SystemError. `socketOffloads`, `socketMark`: SocketOptions::offloads
  /// and SocketOptions::mark of all sockets. All references must outlive this.
  PacketPump(Host& host, const DeviceOptions& device, bool socketOffloads, uint32_t socketMark,
             PacketPool& pool, Tunnel& tunnel, LogLimiter& log);

  /// Is shown each packet from the device before the tunnel, and may take it: it then returns true.
  using Filter = std::function<bool(Packet& packet, Time now)>;
  void setFilter(Filter filter) { filter_ = std::move(filter); }
  /// Gives the tunnel a packet that the filter has taken.
  void toTunnel(Packet packet, Time now);
  /// Gives the host a packet.
  void toDevice(Packet packet);

  const TunDevice& device() const { return *device_; }
  SocketTable& sockets() { return sockets_; }

  /// Moves packets from the device to the tunnel, and what the tunnel has ready to sockets and
  /// device. Returns true when more is left: call again at once.
  bool turn(Time now);
  /// Sends the datagrams that the tunnel has ready. Returns true when more is left: call again at
  /// once.
  bool sendDatagrams(Time now);

  /// What was lost between host and tunnel since the start.
  HostDrops drops() const;
  /// What passed through sockets and device since the start.
  HostTraffic traffic() const;

 private:
  bool readDevice(Time now);
  size_t onDatagrams(std::span<ReceivedDatagram> batch);
  void onMerged(SocketId socket, RunDamage& damage, uint64_t damaged);
  size_t deliverPackets(size_t limit);
  void onSendError(const Datagram& refused, int error) override;
  void onTooBig(const Datagram& refused) override { tunnel_.onTooBig(refused, clock_.now()); }

  const Clock& clock_;
  PacketPool& pool_;
  Tunnel& tunnel_;
  LogLimiter& log_;
  Filter filter_;
  std::unique_ptr<TunDevice> device_;
  bool deviceReadable_ = false;  ///< it may have packets
  size_t newPackets_ = 0;        ///< from the device, since the last sendDatagrams()
  uint64_t refusedRuns_ = 0;     ///< of the device, as far as the log says
  SocketTable sockets_;
};

}  // namespace braid
