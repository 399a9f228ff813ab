#pragma once

#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/fake/fake_network.h"
#include "host/host.h"
#include "host/stream_host.h"
#include "host/tun_device.h"

namespace braid {

/// A TCP connection for tests, seen and controlled from its other end.
struct FakeConnection {
  Endpoint source, destination;
  uint64_t tag = 0;
  int connectError = 0;     ///< EINPROGRESS: not yet
  int error = 0;            ///< the connection failed with this errno; 0: it did not
  std::string toGateway;    ///< data that the gateway has not read yet
  std::string fromGateway;  ///< data that the gateway has written
  bool ended = false;       ///< the other end has sent its last byte
  size_t room = SIZE_MAX;   ///< bytes that the gateway can still write
  bool shut = false;        ///< the gateway has sent its last byte
  bool closed = false;      ///< the gateway closed it gracefully
  bool reset = false;       ///< the gateway destroyed the socket without close()
};

/// A StreamHost whose connections are controlled by the test.
class FakeStreamHost final : public StreamHost {
 public:
  using Connection = std::shared_ptr<FakeConnection>;

  explicit FakeStreamHost(StreamObserver& observer) : observer_(observer) {}

  /// Simulates that a host connects. Returns the connection, which the gateway is asked to accept.
  Connection arrive(const Endpoint& source, const Endpoint& destination);
  /// Tells the gateway that a connection has changed.
  void tell(const FakeConnection& connection, StreamObserver::Ready ready) {
    observer_.onReady(connection.tag, ready);
  }
  /// All connections that the gateway opened, in order.
  const std::vector<Connection>& opened() const { return opened_; }
  /// The connections that the gateway opened since the last call.
  std::vector<Connection> takeOpened() { return std::exchange(opened_, {}); }
  /// The next calls of connect() fail with these errors, one each; 0: no error. refuseAccept():
  /// accept() fails with this error.
  void refuseConnect(std::deque<int> errors) { connectErrors_ = std::move(errors); }
  void refuseAccept(int error) { acceptError_ = error; }
  void setMost(size_t most) { most_ = most; }
  /// Interceptions are refused from now on.
  void refuseInterception(bool on) { refuse_ = on; }
  /// The present interception of new connections; nullptr: none.
  const Interception* taking() const { return taking_ ? &*taking_ : nullptr; }
  int changes() const { return changes_; }
  bool accepts() const { return accepts_; }

  void intercept(const Interception& what, bool takeNew) override;
  std::optional<std::vector<StreamBarrier>> barriers(const Interception&,
                                                     const std::vector<StreamApproach>& approaches,
                                                     bool) override {
    approaches_ = approaches;
    return barriers_;
  }
  /// Makes the packet filter drop the intercepted connections that these barriers describe.
  void bar(std::vector<StreamBarrier> barriers) { barriers_ = std::move(barriers); }
  /// The approaches that the gateway asked about last.
  const std::vector<StreamApproach>& approaches() const { return approaches_; }
  /// This host cannot give connections back.
  void refuseGivingBack() { canGiveBack_ = false; }
  bool canGiveBack() override { return canGiveBack_; }
  /// Simulates that the packet filter has let a new connection through to the device.
  void letThrough(const Endpoint& source, const Endpoint& destination) {
    letThrough_.emplace(source, destination);
  }
  /// The packet filter remembers none of them any more.
  void forgetLetThrough() { letThrough_.clear(); }
  bool wasLetThrough(const Endpoint& source, const Endpoint& destination) override {
    return letThrough_.contains({source, destination});
  }
  void giveBack(ByteView syn) override { givenBack_.emplace_back(syn.begin(), syn.end()); }
  /// The packets that were given back since the last call.
  std::vector<std::vector<uint8_t>> takeGivenBack() { return std::exchange(givenBack_, {}); }
  void stopIntercepting() override { taking_.reset(); }
  std::optional<Accepted> accept(uint64_t tag, int& error) override;
  void wantAccept(bool on) override;
  void retag(StreamSocket& socket, uint64_t tag) override;
  std::unique_ptr<StreamSocket> connect(const std::optional<Endpoint>& source,
                                        const Endpoint& destination, uint64_t tag,
                                        int& error) override;
  size_t most() const override { return most_; }

 private:
  std::vector<StreamBarrier> barriers_;
  std::vector<StreamApproach> approaches_;
  bool canGiveBack_ = true;
  std::set<std::pair<Endpoint, Endpoint>> letThrough_;
  std::vector<std::vector<uint8_t>> givenBack_;
  StreamObserver& observer_;
  std::deque<Connection> waiting_;
  std::vector<Connection> opened_;
  std::deque<int> connectErrors_;
  int acceptError_ = 0;
  size_t most_ = 1000;
  bool refuse_ = false, accepts_ = true;
  std::optional<Interception> taking_;
  int changes_ = 0;
};

/// A clock that stands still until a test advances it.
class FakeClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void advance(Duration by) { now_ += by; }
  /// `to` must not be earlier than now().
  void set(Time to) { now_ = to; }

 private:
  Time now_{1h};
};

/// A device without a kernel behind it.
class FakeTunDevice final : public TunDevice {
 public:
  FakeTunDevice(const std::string& name, std::function<void()> onReadable);

  /// Simulates that the host routes a packet into the device.
  void put(ByteView packet);
  /// Simulates that the device is deleted.
  void vanish();
  /// The packets that the gateway wrote since the last call.
  std::vector<std::vector<uint8_t>> takeWritten();

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  void write(Packet packet) override;
  void flush() override {}

 private:
  std::function<void()> onReadable_;
  std::deque<std::vector<uint8_t>> in_;
  std::vector<std::vector<uint8_t>> written_;
  bool vanished_ = false;
};

/// A host for tests. Tests reach what the gateway opened by device() and sockets(), as long as the
/// gateway keeps it.
class FakeHost final : public Host {
 public:
  /// `seed`: seed of the gateway's random numbers. `clock` must outlive the host.
  FakeHost(const FakeClock& clock, uint64_t seed) : clock_(clock), seed_(seed) {}

  /// The device that was opened last; nullptr: none.
  FakeTunDevice* device() { return device_; }
  FakeHostNetwork& net() { return network_; }
  /// The host side of the gateway's streams; nullptr: it has none.
  FakeStreamHost* streams() { return streams_; }
  /// Streams are refused from now on.
  void refuseStreams(bool on) { refuseStreams_ = on; }
  /// The present address translation; nullptr: none was set, or its rules were removed.
  const Translation* translation() const { return translation_ ? &*translation_ : nullptr; }
  /// How often connections that began through the tunnel were forgotten.
  unsigned forgotten() const { return forgotten_; }
  /// The present rules of the packet filter; nullptr: there are none.
  const FilterRules* filter() const { return filter_ ? &*filter_ : nullptr; }
  /// Simulates that others remove the rules of the packet filter.
  void takeFilterAway() { filter_.reset(); }
  /// Translations are refused from now on.
  void refuseTranslation(bool on) { refuseTranslation_ = on; }
  const std::map<SocketId, FakeDatagramSocket*>& sockets() const { return sockets_; }
  /// The ids of all sockets that were ever opened, in order.
  const std::vector<SocketId>& everOpened() const { return everOpened_; }
  /// Opening a socket on one of these addresses fails with this error from now on. For example
  /// EAFNOSUPPORT simulates a host without IPv6.
  void refuseLocal(std::set<Address> addresses, int error = EADDRNOTAVAIL) {
    refused_ = std::move(addresses);
    refusal_ = error;
  }

  /// The datagrams that all sockets sent since the last call, in order.
  std::vector<FakeDatagram> takeSent() { return std::exchange(sent_, {}); }
  /// Delivers a datagram to the socket that it is addressed to. False when there is none.
  bool deliver(const FakeDatagram& datagram);

  /// Names whose lookup was requested and is not answered yet, each once.
  std::vector<HostPort> asked() const;
  /// The uplinks over which the lookup of the name was requested and is not answered yet.
  std::vector<std::string> askedOver(const HostPort& name) const;
  /// Answers the lookups of a name over all uplinks, or over one.
  void answer(const HostPort& name, const std::vector<Endpoint>& found);
  void answer(const std::string& uplink, const HostPort& name, const std::vector<Endpoint>& found);
  /// Simulates that names are asked for at a program of the host from now on.
  void setResolverHere(bool on) { resolverHere_ = on; }
  /// The lookups that were requested and are not answered yet.
  const std::vector<std::pair<LookupWay, HostPort>>& lookups() const { return lookups_; }

  /// The present ways to captive portals; nullptr: none.
  const PortalRules* portals() const { return portals_ ? &*portals_ : nullptr; }
  /// Ways to captive portals, and requests to web servers, are refused from now on.
  void refusePortals(bool on) { refusePortals_ = on; }
  /// The web servers that were asked and have not answered yet, each with the uplink's way.
  const std::vector<std::pair<LookupWay, Address>>& pages() const { return pages_; }
  /// Answers the request to a server over an uplink. Throws std::logic_error when there is none.
  void answerPage(const std::string& uplink, const Address& server, unsigned status,
                  const std::string& location = {});

  const Clock& clock() const override { return clock_; }
  /// Simulates that the machine was suspended, or resumed from a snapshot.
  void breakOff(std::string why) { broken_ = std::move(why); }
  std::optional<std::string> takeBreak() override { return std::exchange(broken_, std::nullopt); }
  RandomKey randomKey() override { return knownKey(seed_ + kNextKey * keys_++); }
  std::unique_ptr<TunDevice> openDevice(const DeviceOptions& options, Callback onReadable) override;
  std::unique_ptr<DatagramSocket> openSocket(SocketId id, const SocketOptions& options,
                                             SocketCallbacks callbacks) override;
  std::unique_ptr<StreamHost> openStreams(const std::string& device,
                                          StreamObserver& observer) override;
  std::unique_ptr<Translator> openTranslator(const std::string& device) override;
  std::unique_ptr<PacketFilter> openFilter(const std::string& device) override;
  unsigned slot() override { return 0; }
  HostNetwork& network() override { return network_; }
  NetworkMonitor& watchNetwork(Callback onChange) override;
  std::unique_ptr<PortalGate> openPortalGate(const std::string& device) override;
  std::unique_ptr<Resolver> openResolver(Resolver::OnResult onResult) override;
  std::unique_ptr<WebProbe> openWebProbe(WebProbe::OnAnswer onAnswer) override;

 private:
  const FakeClock& clock_;
  static constexpr uint64_t kNextKey = 0x9e3779b97f4a7c15;  // far from the seeds of tests
  uint64_t seed_, keys_ = 0;
  std::optional<std::string> broken_;
  FakeHostNetwork network_;
  FakeTunDevice* device_ = nullptr;
  FakeStreamHost* streams_ = nullptr;
  bool refuseStreams_ = false;
  bool refuseTranslation_ = false;
  std::optional<Translation> translation_;
  unsigned forgotten_ = 0;
  std::optional<FilterRules> filter_;
  std::map<SocketId, FakeDatagramSocket*> sockets_;
  std::vector<SocketId> everOpened_;
  std::set<Address> refused_;
  int refusal_ = EADDRNOTAVAIL;
  std::vector<FakeDatagram> sent_;
  std::vector<Resolver::OnResult> onResolved_;  ///< of each resolver; it skips others' names
  std::vector<std::pair<LookupWay, HostPort>> lookups_;
  bool resolverHere_ = false;
  std::optional<PortalRules> portals_;
  bool refusePortals_ = false;
  WebProbe::OnAnswer onPage_;
  std::vector<std::pair<LookupWay, Address>> pages_;
};

}  // namespace braid
