#pragma once

#include <functional>
#include <memory>
#include <string>

#include "host/clock.h"
#include "host/datagram_socket.h"
#include "host/host_network.h"
#include "host/network_monitor.h"
#include "host/resolver.h"
#include "host/stream_host.h"
#include "host/translator.h"
#include "host/tun_device.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// A gateway's borders to its operating system: linux/ has the real ones, fake/ those of tests. What is
/// opened must not outlive the host. Callbacks say only that there is something to do, and come between two
/// turns of the gateway, never from inside of a call.
class Host {
 public:
  using Callback = std::function<void()>;

  virtual ~Host() = default;

  virtual const Clock& clock() const = 0;
  /// Others at each call, and known to nobody. Throws SystemError.
  virtual RandomKey randomKey() = 0;
  /// Throws SystemError.
  virtual std::unique_ptr<TunDevice> openDevice(const DeviceOptions& options, Callback onReadable) = 0;
  /// Throws SystemError.
  virtual std::unique_ptr<DatagramSocket> openSocket(SocketId id, const SocketOptions& options,
                                                     SocketCallbacks callbacks) = 0;
  /// TCP connections that end here, for the gateway with this device. Throws SystemError.
  virtual std::unique_ptr<StreamHost> openStreams(const std::string& device, StreamObserver& observer) = 0;
  /// Address translation for the gateway with this device. Throws SystemError.
  virtual std::unique_ptr<Translator> openTranslator(const std::string& device) = 0;
  virtual HostNetwork& network() = 0;
  /// To be called once. Throws SystemError.
  virtual NetworkMonitor& watchNetwork(Callback onChange) = 0;
  virtual std::unique_ptr<Resolver> openResolver(Resolver::OnResult onResult) = 0;
};

}  // namespace braid
