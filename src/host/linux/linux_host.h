#pragma once

#include <optional>
#include <string>

#include "host/host.h"
#include "host/linux/host_slot.h"
#include "host/linux/loop.h"
#include "host/linux/netlink_config.h"
#include "host/linux/netlink_monitor.h"
#include "host/linux/resume_watch.h"

namespace braid {

/// The real host, a Linux machine. Callbacks are called on a libev loop.
class LinuxHost : public Host {
 public:
  /// `loop` must outlive the host. Throws SystemError.
  explicit LinuxHost(Loop& loop) : loop_(loop), resumed_(loop) {}

  const Clock& clock() const override { return clock_; }
  std::optional<std::string> takeBreak() override { return resumed_.take(); }
  RandomKey randomKey() override;
  std::unique_ptr<TunDevice> openDevice(const DeviceOptions& options, Callback onReadable) override;
  std::unique_ptr<DatagramSocket> openSocket(SocketId id, const SocketOptions& options,
                                             SocketCallbacks callbacks) override;
  std::unique_ptr<StreamHost> openStreams(const std::string& device,
                                          StreamObserver& observer) override;
  std::unique_ptr<Translator> openTranslator(const std::string& device) override;
  std::unique_ptr<PacketFilter> openFilter(const std::string& device) override;
  unsigned slot() override;
  HostNetwork& network() override { return network_; }
  NetworkMonitor& watchNetwork(Callback onChange) override;
  std::unique_ptr<PortalGate> openPortalGate(const std::string& device) override;
  std::unique_ptr<Resolver> openResolver(Resolver::OnResult onResult) override;
  std::unique_ptr<WebProbe> openWebProbe(WebProbe::OnAnswer onAnswer) override;

 private:
  Loop& loop_;
  MonotonicClock clock_;
  ResumeWatch resumed_;
  NetlinkConfig network_;
  std::optional<HostSlot> slot_;
  std::optional<NetlinkMonitor> monitor_;
  std::optional<IoWatcher> monitorWatcher_;
};

}  // namespace braid
