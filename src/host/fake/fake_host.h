#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/fake/fake_clock.h"
#include "host/fake/fake_datagram_socket.h"
#include "host/fake/fake_host_network.h"
#include "host/fake/fake_stream_host.h"
#include "host/fake/fake_tun_device.h"
#include "host/host.h"

namespace braid {

/// A host of tests. What a gateway opened is reached by device() and sockets() for as long as the gateway
/// keeps it.
class FakeHost final : public Host {
 public:
  /// `seed`: what the gateway's randomness begins with. `clock` must outlive the host.
  FakeHost(const FakeClock& clock, uint64_t seed) : clock_(clock), seed_(seed) {}

  /// The device that was opened last; nullptr: none.
  FakeTunDevice* device() { return device_; }
  FakeHostNetwork& net() { return network_; }
  /// Where streams end; nullptr: the gateway has none.
  FakeStreamHost* streams() { return streams_; }
  /// Streams are refused from now on.
  void refuseStreams(bool on) { refuseStreams_ = on; }
  /// What is translated now; nullptr: nothing was ever asked for, or the rules are gone.
  const Translation* translation() const { return translation_ ? &*translation_ : nullptr; }
  /// Translations are refused from now on.
  void refuseTranslation(bool on) { refuseTranslation_ = on; }
  const std::map<SocketId, FakeDatagramSocket*>& sockets() const { return sockets_; }
  /// All that were ever opened, in their order.
  const std::vector<SocketId>& everOpened() const { return everOpened_; }
  /// Sockets cannot be opened on these addresses, for this reason: EAFNOSUPPORT of a host without IPv6, say.
  void refuseLocal(std::set<Address> addresses, int error = EADDRNOTAVAIL) {
    refused_ = std::move(addresses);
    refusal_ = error;
  }

  /// What all sockets sent since the last call, in order.
  std::vector<FakeDatagram> takeSent() { return std::exchange(sent_, {}); }
  /// A datagram arrives at the socket that it is for. False when there is none.
  bool deliver(const FakeDatagram& datagram);

  /// Names that were asked for and not answered.
  const std::vector<HostPort>& asked() const { return asked_; }
  void answer(const HostPort& name, const std::vector<Endpoint>& found);

  const Clock& clock() const override { return clock_; }
  RandomKey randomKey() override { return knownKey(seed_); }
  std::unique_ptr<TunDevice> openDevice(const DeviceOptions& options, Callback onReadable) override;
  std::unique_ptr<DatagramSocket> openSocket(SocketId id, const SocketOptions& options,
                                             SocketCallbacks callbacks) override;
  std::unique_ptr<StreamHost> openStreams(const std::string& device, StreamObserver& observer) override;
  std::unique_ptr<Translator> openTranslator(const std::string& device) override;
  HostNetwork& network() override { return network_; }
  NetworkMonitor& watchNetwork(Callback onChange) override;
  std::unique_ptr<Resolver> openResolver(Resolver::OnResult onResult) override;

 private:
  const FakeClock& clock_;
  uint64_t seed_;
  FakeHostNetwork network_;
  FakeTunDevice* device_ = nullptr;
  FakeStreamHost* streams_ = nullptr;
  bool refuseStreams_ = false;
  bool refuseTranslation_ = false;
  std::optional<Translation> translation_;
  std::map<SocketId, FakeDatagramSocket*> sockets_;
  std::vector<SocketId> everOpened_;
  std::set<Address> refused_;
  int refusal_ = EADDRNOTAVAIL;
  std::vector<FakeDatagram> sent_;
  Resolver::OnResult onResolved_;
  std::vector<HostPort> asked_;
};

}  // namespace braid
