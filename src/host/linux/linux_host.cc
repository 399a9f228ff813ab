#include "host/linux/linux_host.h"

#include <sys/random.h>
#include <time.h>

#include <cerrno>
#include <utility>

#include "host/linux/link_resolver.h"
#include "host/linux/linux_stream_host.h"
#include "host/linux/linux_tun_device.h"
#include "host/linux/nft_filter.h"
#include "host/linux/nft_portals.h"
#include "host/linux/nft_rules.h"
#include "host/linux/udp_socket.h"
#include "host/linux/web_probe.h"
#include "host/system.h"

namespace braid {

// The clocks are added because the kernels of two copies of a virtual machine, which were not told
// that they are copies, may give the same bytes for up to a minute.
RandomKey LinuxHost::randomKey() {
  RandomKey key;
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    throw SystemError(errno, "the kernel gives no random bytes");
  size_t at = 0;
  for (clockid_t clock : {CLOCK_REALTIME, CLOCK_BOOTTIME}) {
    timespec t{};
    ::clock_gettime(clock, &t);
    auto ns = static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
    for (size_t i = 0; i < sizeof ns; ++i, ns >>= 8) key[at++] ^= static_cast<uint8_t>(ns);
  }
  return key;
}

std::unique_ptr<TunDevice> LinuxHost::openDevice(const DeviceOptions& options,
                                                 Callback onReadable) {
  auto device = std::make_unique<LinuxTunDevice>(options);
  device->watch(loop_, std::move(onReadable));
  return device;
}

std::unique_ptr<DatagramSocket> LinuxHost::openSocket(SocketId id, const SocketOptions& options,
                                                      SocketCallbacks callbacks) {
  auto socket = std::make_unique<UdpSocket>(id, options);
  socket->watch(loop_, std::move(callbacks));
  return socket;
}

std::unique_ptr<StreamHost> LinuxHost::openStreams(const std::string& device,
                                                   StreamObserver& observer) {
  return std::make_unique<LinuxStreamHost>(loop_, device, observer);
}

std::unique_ptr<Translator> LinuxHost::openTranslator(const std::string& device) {
  return std::make_unique<NftTranslator>(device);
}

std::unique_ptr<PacketFilter> LinuxHost::openFilter(const std::string& device) {
  return std::make_unique<NftFilter>(device);
}

unsigned LinuxHost::slot() {
  if (!slot_) slot_.emplace(kMostGateways);
  return slot_->number();
}

NetworkMonitor& LinuxHost::watchNetwork(Callback onChange) {
  monitor_.emplace();
  monitorWatcher_.emplace(loop_, monitor_->fd(), std::move(onChange));
  return *monitor_;
}

std::unique_ptr<PortalGate> LinuxHost::openPortalGate(const std::string& device) {
  return std::make_unique<NftPortals>(device);
}

std::unique_ptr<Resolver> LinuxHost::openResolver(Resolver::OnResult onResult) {
  return std::make_unique<LinkResolver>(loop_, std::move(onResult));
}

std::unique_ptr<WebProbe> LinuxHost::openWebProbe(WebProbe::OnAnswer onAnswer) {
  return std::make_unique<LinuxWebProbe>(loop_, std::move(onAnswer));
}

}  // namespace braid
