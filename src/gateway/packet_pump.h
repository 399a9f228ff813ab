#pragma once

#include <memory>
#include <span>
#include <string>

#include "gateway/control/gateway_status.h"
#include "gateway/log.h"
#include "gateway/socket_table.h"
#include "host/host.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Carries packets between device and tunnel and datagrams between sockets and tunnel, in bounded batches. What a
/// batch of datagrams delivers goes to the device before the next batch is read: a datagram may hold tens of packets,
/// and whoever sends such ones would fill the memory with what waits for the device.
class PacketPump : private SendObserver {
 public:
  /// Opens the device: throws SystemError. `socketOffloads`: SocketOptions::offloads of all sockets. All must outlive
  /// this.
  PacketPump(Host& host, const DeviceOptions& device, bool socketOffloads, PacketPool& pool, Tunnel& tunnel,
             LogLimiter& log);

  const TunDevice& device() const { return *device_; }
  SocketTable& sockets() { return sockets_; }

  /// Moves what the device has to the tunnel, and what the tunnel has ready to sockets and device. True: there is more;
  /// call again at once.
  bool turn(Time now);
  /// Sends what the tunnel has ready. True: there is more; call again at once.
  bool sendDatagrams(Time now);

  /// What was lost between host and tunnel so far.
  HostDrops drops() const;
  /// What went through sockets and device so far.
  HostTraffic traffic() const;

 private:
  bool readDevice(Time now);
  size_t onDatagrams(std::span<ReceivedDatagram> batch);
  size_t deliverPackets(size_t limit);
  void onSendError(const Datagram& refused, int error) override;
  void onTooBig(const Datagram& refused) override { tunnel_.onTooBig(refused, clock_.now()); }

  const Clock& clock_;
  PacketPool& pool_;
  Tunnel& tunnel_;
  LogLimiter& log_;
  std::unique_ptr<TunDevice> device_;
  bool deviceReadable_ = false;  ///< it may have packets
  size_t newPackets_ = 0;        ///< of the device, since sendDatagrams()
  SocketTable sockets_;
};

}  // namespace braid
