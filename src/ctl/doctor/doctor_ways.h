#pragma once

#include <memory>

#include "host/linux/linux_host.h"

namespace braid {

/// This machine as the host of a gateway that only tries the paths to its peers. Sockets are real,
/// but nothing of the host is changed. No packet comes from its device.
class WayHost final : public Host {
 public:
  explicit WayHost(Loop& loop) : real_(loop) {}

  const Clock& clock() const override { return real_.clock(); }
  RandomKey randomKey() override { return real_.randomKey(); }
  std::unique_ptr<TunDevice> openDevice(const DeviceOptions& options, Callback onReadable) override;
  std::unique_ptr<DatagramSocket> openSocket(SocketId id, const SocketOptions& options,
                                             SocketCallbacks callbacks) override {
    return real_.openSocket(id, options, std::move(callbacks));
  }
  /// Not supported. Throws SystemError.
  std::unique_ptr<StreamHost> openStreams(const std::string& device,
                                          StreamObserver& observer) override;
  /// Not supported. Throws SystemError.
  std::unique_ptr<Translator> openTranslator(const std::string& device) override;
  HostNetwork& network() override { return network_; }
  NetworkMonitor& watchNetwork(Callback onChange) override {
    return real_.watchNetwork(std::move(onChange));
  }
  std::unique_ptr<Resolver> openResolver(Resolver::OnResult onResult) override {
    return real_.openResolver(std::move(onResult));
  }

 private:
  /// Ignores every change.
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
    void removeStaleMarks(uint32_t) override {}
    std::vector<Prefix> networksElsewhere(const std::string&) override { return {}; }
    void setForwarding(Address::Family, const std::vector<std::string>&,
                       const std::string&) override {}
    void removeForwarding(Address::Family) override {}
    std::string forwardingBefore(Address::Family) override { return {}; }
    Restored restore() override { return {}; }
    std::vector<std::string> undo() override { return {}; }
  };

  LinuxHost real_;
  Unchanged network_;
};

}  // namespace braid
