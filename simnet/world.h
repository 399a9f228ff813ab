#pragma once

// A simulated world in virtual time: gateways (the real tunnel core, each with its own packet
// pool), joined by modelled links, with hosts behind them. Nothing here reads a clock or a random
// device. One seed decides everything, and hash() covers every datagram sent.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/packet.h"
#include "base/random.h"
#include "base/time.h"
#include "inet/frame.h"
#include "simnet/fake_handshake.h"
#include "simnet/inner_packets.h"
#include "simnet/link/link.h"
#include "simnet/station.h"
#include "simnet/timeline.h"
#include "simnet/wake_list.h"
#include "simnet/wire_datagram.h"
#include "tunnel/tunnel.h"

namespace braid::sim {

class World;
class Node;
class Path;

/// A datagram on a link that several paths share, with its further route.
struct Transit {
  Path* path = nullptr;
  bool up = false;   ///< true: from the path's initiator to its responder
  size_t hop = 0;    ///< index of this link among the path's shared links
  size_t bytes = 0;  ///< IP packet
  WireDatagram wire;
};
inline bool clearEcn(Transit& t) {
  return clearEcn(t.wire);
}
inline bool markCe(Transit& t) {
  return markCe(t.wire);
}
inline void corrupt(Transit& t, Random& random) {
  corrupt(t.wire, random);
}
using SharedLink = Link<Transit>;

/// One end of a path: a gateway's socket and its local endpoint as the gateway itself sees it.
struct PathEnd {
  Node* node = nullptr;
  SocketId socket = 0;
  Endpoint endpoint;
};

/// A bidirectional network route from an initiator's socket to a responder's socket, optionally
/// with a NAT box in front of the initiator.
class Path {
 public:
  Path(std::string name, PathEnd initiator, PathEnd responder, LinkOptions up, LinkOptions down,
       uint64_t seed, Time now);

  const std::string& name() const { return name_; }
  /// The initiator's end; far() is the responder's.
  const PathEnd& near() const { return near_; }
  const PathEnd& far() const { return far_; }
  /// The initiator's endpoint as the responder sees it.
  const Endpoint& outside() const { return outside_; }

  /// Changes the link's options from now on, in both directions; changeUp() and changeDown() in
  /// one.
  void change(const std::function<void(LinkOptions&)>& f, Time now);
  void changeUp(const std::function<void(LinkOptions&)>& f, Time now) { change(up_, f, now); }
  void changeDown(const std::function<void(LinkOptions&)>& f, Time now) { change(down_, f, now); }
  LinkStats upStats(Time now) { return up_.stats(now); }
  LinkStats downStats(Time now) { return down_.stats(now); }
  const LinkOptions& upOptions() const { return up_.options(); }

  /// Puts a NAT box in front of the initiator. A mapping that is unused for `idle` is removed (0:
  /// never); the next datagram from inside creates a new mapping with another port.
  void enableNat(Duration idle, Time now);
  /// Replaces the NAT mapping: a new port, and with `newAddress` also a new address.
  void rebind(bool newAddress);
  uint64_t natDrops() const { return natDrops_; }

  /// Links that this path shares with other paths (World::addLink()). A datagram passes them in
  /// this order, then the path's own link.
  std::vector<SharedLink*> upVia, downVia;
  /// The uplink's MTU, bytes of IP packet: the simulated kernel answers larger datagrams with
  /// EMSGSIZE. 0: no limit.
  size_t uplinkMtu = 0;
  /// The simulated kernel answers every send on this uplink with ENETUNREACH.
  bool unreachable = false;

 private:
  friend class World;
  using DatagramLink = Link<WireDatagram>;
  void change(DatagramLink& link, const std::function<void(LinkOptions&)>& f, Time now);
  bool isOutside(const Endpoint& e) const;

  std::string name_;
  PathEnd near_, far_;
  Endpoint outside_;
  std::vector<Endpoint> formerOutside_;
  bool nat_ = false;
  Duration natIdle_{};
  Time natUsed_;
  uint64_t natDrops_ = 0;
  DatagramLink up_, down_;
};

/// One gateway: a tunnel core with its packet pool, its clock and the hosts on its LAN.
class Node final : public Station {
 public:
  Node(World& world, unsigned number, std::string name, TunnelOptions options, uint64_t seed);

  const std::string& name() const override { return name_; }
  unsigned number() const { return number_; }
  Tunnel& tunnel() { return *tunnel_; }
  const Tunnel& tunnel() const { return *tunnel_; }
  bool isRunning() const { return tunnel_ != nullptr; }
  PacketPool& pool() { return *pool_; }
  FakeHandshakeProvider& handshakes() { return *handshakes_; }
  TunnelStatus status() const;
  uint64_t drops(Drop cause) const;
  /// Inner address of the host behind this gateway.
  Address host(bool v6 = false) const override;
  /// The time on this gateway's own clock.
  Time clock() const;
  /// Moves the gateway's clock forward by another `ahead` (as suspend and resume do).
  void jumpClock(Duration ahead);
  /// The machine goes on as this one of its copies (Tunnel::forgetKeys()).
  void goOn(unsigned copy = 1);

  TunnelOptions options;           ///< read at start()
  size_t poolLimit = 16384;        ///< read at start()
  std::vector<PeerOptions> peers;  ///< read at start()
  std::vector<ProtocolVersion> versions{kProtocolVersions.begin(),
                                        kProtocolVersions.end()};  ///< read at start()
  std::vector<UplinkSpec> uplinks;  ///< read at start(); for a running core use setUplink()
  /// Keeps the list of known initiators over restarts and sends them a restart notice, as the
  /// daemon does with a file.
  bool callsBack = false;

  void start();
  /// Ends the core without closing its sessions, like a crash. False when the core leaked packet
  /// buffers.
  bool stop();
  /// Stops the gateway in good order, as the daemon does: close(), a last poll, stop().
  bool shutDown();
  /// Takes an uplink's link down or up and tells the gateway.
  void setUplink(const std::string& name, bool up);

  /// Sends a packet or frame from the LAN into the gateway's TUN or TAP device.
  void send(ByteView packet) override;
  /// Puts a link between the device and the hosts, with the same options in both directions. By
  /// default they are joined directly.
  void setLan(const LinkOptions& both);
  /// Returns true for a packet that this link must lose in addition. `toHost`: the packet came out
  /// of the device.
  std::function<bool(bool toHost, ByteView)> lanLoses;
  void listen(uint8_t protocol, uint16_t port, Handler handler) override;
  /// The hosts are on a bridge: the device is a TAP device, and each host has the MAC address
  /// macOf(host).
  bool bridged = false;
  static MacAddress macOf(const Address& host);
  /// The streams of a running gateway. The gateway is polled after the caller has used them.
  StreamApi& streams() {
    touch();
    return tunnel_->streams();
  }
  /// Called with every stream event.
  std::function<void(const StreamEvent&)> onStream;
  /// The load test of a running gateway. The gateway is polled after the caller has used it.
  PeerLoadTest& loadTest() {
    touch();
    return tunnel_->loadTest();
  }
  /// Equal to clock().
  Time now() const { return clock(); }
  /// Called first with every packet that comes out of the device. Returning true consumes the
  /// packet.
  std::function<bool(ByteView)> tap;

  /// All events that the core reported, with the world's time.
  std::vector<std::pair<Time, Event>> events;
  size_t countEvents(Event::Kind kind) const;
  /// Packets out of the device that are malformed or have a wrong checksum
  uint64_t badPackets = 0;
  uint64_t unclaimed = 0;     ///< well-formed packets for which no handler is registered
  std::vector<Bytes> strays;  ///< the first of the unclaimed packets
  uint64_t sentDatagrams = 0, sentBytes = 0, receivedDatagrams = 0;
  /// Packets dropped at the device or a socket because the pool was exhausted
  uint64_t deviceDrops = 0;

 private:
  friend class World;
  struct Lan {
    Link<Bytes> toHost, fromHost;
  };
  static Bytes framed(ByteView packet);
  ByteView unframed(ByteView frame);
  void enter(ByteView packet);
  void leave(ByteView packet);
  void moveLan();
  Time nextOnLan() const;
  /// Input has arrived: the gateway is polled at the current moment.
  void touch();
  void deliver(ByteView packet);
  void deliverIcmp(ByteView packet, const InnerPacket& ip);

  World& world_;
  unsigned number_;
  std::string name_;
  Random random_;
  Duration ahead_{};
  std::unique_ptr<Lan> lan_;
  std::unique_ptr<PacketPool> pool_;
  std::unique_ptr<FakeHandshakeProvider> handshakes_;
  std::unique_ptr<Tunnel> tunnel_;
  std::vector<KnownInitiator> callers_;  ///< known initiators of the previous core
  std::map<std::pair<uint8_t, uint16_t>, Handler> handlers_;
  bool dirty_ = false;          // input has arrived since the last poll
  Time deadline_ = kNever;      // by its own clock
  Time retryAt_ = Time::min();  // the world's time before which an overdue deadline waits
  int spins_ = 0;
};

/// An alternative to paths: a network that carries the datagrams of a world's gateways.
class Medium {
 public:
  virtual ~Medium() = default;
  /// The endpoint of a gateway's socket.
  virtual Endpoint source(const Node& from, SocketId socket) const = 0;
  /// Carries a datagram. `bytes`: size of its IP packet. The medium calls World::arrive() when the
  /// datagram arrives.
  virtual void carry(WireDatagram&& wire, size_t bytes) = 0;
};

class World : public Timeline {
 public:
  /// A gateway livelocks when it asks for this many wake-ups in a row without a later deadline: a
  /// real event loop would use 100 % of a CPU core.
  static constexpr int kMaxSpins = 50;
  /// A gateway also livelocks when it sends more datagrams than this at one moment.
  static constexpr int kMaxBurst = 100000;

  explicit World(uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  uint64_t seed() const { return seed_; }

  Node& addNode(std::string name, TunnelOptions options = {});
  /// Makes two gateways peers. Only `initiator` knows an address of the other.
  void pair(Node& initiator, Node& responder, Duration keepalive = 10s);
  /// Adds a path between two peers; `name` is also the name of the initiator's uplink. Call before
  /// start().
  Path& join(Node& initiator, Node& responder, const std::string& name, LinkOptions up,
             LinkOptions down, bool v6 = false);
  Path& path(std::string_view name);
  /// Adds one direction of a link that paths share, for use in Path::upVia and Path::downVia.
  SharedLink& addLink(LinkOptions options);
  const std::vector<std::unique_ptr<Path>>& paths() const { return paths_; }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  void start();

  template <typename T, typename... Args>
  T& add(Args&&... args) {
    auto host = std::make_unique<T>(*this, std::forward<Args>(args)...);
    T& made = *host;
    hosts_.push_back(std::move(host));
    return made;
  }

  /// Datagrams that no path carries are given to `medium`, which must outlive the world's last run.
  void attach(Medium& medium) { medium_ = &medium; }
  /// A datagram arrives at a gateway's socket.
  void arrive(Node& to, const Route& from, const WireDatagram& wire);
  /// Delivers a forged datagram, as an attacker would send it.
  void inject(Node& to, const Route& from, ByteView bytes, Ecn ecn = Ecn::kNotEct);
  /// Called with every datagram before it enters its link. `up`: from the initiator.
  std::function<void(Path&, bool up, const WireDatagram&)> onWire;

  /// Advances the time to the next wake-up, at most to `limit`, and handles it. False when there is
  /// none before `limit`, or after a failure.
  bool step(Time limit);
  void run(Duration d);
  /// Runs until `done` returns true; false when it does not within `d`.
  bool runUntil(const std::function<bool()>& done, Duration d);
  /// Empty unless a gateway livelocked; then names the gateway and its state.
  const std::string& failure() const { return failure_; }
  /// Hash of all datagrams sent, with their times and addresses.
  uint64_t hash() const { return hash_; }
  uint64_t unroutable() const { return unroutable_; }
  /// The state of all gateways and paths, for messages about failures.
  std::string report() const;

 private:
  friend class Node;
  Time wakeTime(const Node& node) const;
  Time nextWake();
  void carry(Path& path, bool up, WireDatagram wire, size_t bytes);
  void forward();
  void deliver(Path& path);
  void serve(Node& node);
  void poll(Node& node);
  void transmit(Node& from, Datagram& datagram);
  void transmitFar(Node& from, Datagram& datagram, WireDatagram& wire);
  void note(const WireDatagram& wire);
  void fail(std::string why);

  uint64_t seed_;
  std::vector<std::unique_ptr<Node>> nodes_;
  WakeList wakes_;              // of the nodes
  std::vector<Node*> withLan_;  // nodes with a link between device and hosts
  Medium* medium_ = nullptr;
  std::vector<std::unique_ptr<Path>> paths_;
  std::vector<std::unique_ptr<SharedLink>> links_;
  std::vector<Time> pathNext_,
      linkNext_;  // their next deliveries: up and down of each path; of each link
  std::vector<std::unique_ptr<Host>> hosts_;
  uint64_t hash_ = 0;
  uint64_t unroutable_ = 0;
  std::string failure_;
};

}  // namespace braid::sim
