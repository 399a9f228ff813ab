#pragma once

// Virtual time: gateways (the real core, each with its own pool) joined by modelled links, with hosts behind
// them. Nothing here reads a clock or a random device; one seed decides everything, and hash() covers every
// datagram sent.

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

/// A datagram on a link that several paths share, and where it goes from there.
struct Transit {
  Path* path = nullptr;
  bool up = false;   ///< from the path's initiator
  size_t hop = 0;    ///< which of the path's shared links this is
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

/// One end of a path: a socket of a gateway and the endpoint that the gateway itself sees there.
struct PathEnd {
  Node* node = nullptr;
  SocketId socket = 0;
  Endpoint endpoint;
};

/// A duplex network route from an initiator's socket to a responder's, with a NAT box in front of the
/// initiator if wanted.
class Path {
 public:
  Path(std::string name, PathEnd initiator, PathEnd responder, LinkOptions up, LinkOptions down,
       uint64_t seed, Time now);

  const std::string& name() const { return name_; }
  /// The end that initiates, and the other one.
  const PathEnd& near() const { return near_; }
  const PathEnd& far() const { return far_; }
  /// How the initiator's socket looks from the responder.
  const Endpoint& outside() const { return outside_; }

  /// Changes what the link does from now on, in both directions or one.
  void change(const std::function<void(LinkOptions&)>& f, Time now);
  void changeUp(const std::function<void(LinkOptions&)>& f, Time now) { change(up_, f, now); }
  void changeDown(const std::function<void(LinkOptions&)>& f, Time now) { change(down_, f, now); }
  LinkStats upStats(Time now) { return up_.stats(now); }
  LinkStats downStats(Time now) { return down_.stats(now); }
  const LinkOptions& upOptions() const { return up_.options(); }

  /// Puts a NAT box in front of the initiator. A mapping unused for `idle` is forgotten (0: never); the next
  /// datagram from inside makes a new one with another port.
  void enableNat(Duration idle, Time now);
  /// A new mapping: another port, and another address too when asked for.
  void rebind(bool newAddress);
  uint64_t natDrops() const { return natDrops_; }

  /// Links that it shares with other paths (World::addLink()): a datagram passes them in this order, then the
  /// path's own link.
  std::vector<SharedLink*> upVia, downVia;
  /// The uplink's own MTU in bytes of IP packet: the kernel answers larger datagrams with EMSGSIZE. 0: none.
  size_t uplinkMtu = 0;
  /// The kernel answers everything on this uplink with ENETUNREACH.
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

/// One gateway: a core with its pool, its clock and the hosts on its LAN.
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
  /// What this gateway's own clock shows.
  Time clock() const;
  /// Puts the gateway's clock ahead by so much more (suspend and resume).
  void jumpClock(Duration ahead);

  TunnelOptions options;           ///< read at start()
  size_t poolLimit = 16384;        ///< read at start()
  std::vector<PeerOptions> peers;  ///< read at start()
  std::vector<ProtocolVersion> versions{kProtocolVersions.begin(),
                                        kProtocolVersions.end()};  ///< read at start()
  std::vector<UplinkSpec> uplinks;  ///< read at start(); setUplink() tells a running core
  /// Keeps who came to it over its restarts, and calls them back, as the daemon does with a file.
  bool callsBack = false;

  void start();
  /// Ends the core without a word, as a crash. False when it did not give back all its buffers.
  bool stop();
  /// The daemon stops in good order: close(), a last poll, stop().
  bool shutDown();
  /// The link of an uplink went away or came back, and the gateway is told.
  void setUplink(const std::string& name, bool up);

  /// A packet or frame from the LAN into the gateway's device.
  void send(ByteView packet) override;
  /// Puts a link between the device and the host, the same in both directions; without one they are joined
  /// directly.
  void setLan(const LinkOptions& both);
  /// True for what this link loses beside that. `toHost`: it came out of the device.
  std::function<bool(bool toHost, ByteView)> lanLoses;
  void listen(uint8_t protocol, uint16_t port, Handler handler) override;
  /// The hosts are on a bridge: the device is a TAP device, and each host has the MAC address that macOf() gives.
  bool bridged = false;
  static MacAddress macOf(const Address& host);
  /// The streams of a running gateway, which is polled when the caller is done with them.
  StreamLanes& streams() {
    touch();
    return tunnel_->streams();
  }
  /// What happened to them.
  std::function<void(const StreamEvent&)> onStream;
  /// The load test of a running gateway, which is polled then.
  PeerLoadTest& loadTest() {
    touch();
    return tunnel_->loadTest();
  }
  /// Its own time.
  Time now() const { return clock(); }
  /// Sees everything that comes out of the device first; true: nobody else gets it.
  std::function<bool(ByteView)> tap;

  /// Everything that the core reported, with the world's time.
  std::vector<std::pair<Time, Event>> events;
  size_t countEvents(Event::Kind kind) const;
  uint64_t badPackets = 0;    ///< came out of the device malformed or with a wrong checksum
  uint64_t unclaimed = 0;     ///< well-formed, but nobody listens
  std::vector<Bytes> strays;  ///< the first few of those
  uint64_t sentDatagrams = 0, sentBytes = 0, receivedDatagrams = 0;
  uint64_t deviceDrops = 0;  ///< pool exhausted at the device or socket

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
  /// Something came in: it is polled at this moment.
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
  std::vector<Caller> callers_;  ///< of the last core
  std::map<std::pair<uint8_t, uint16_t>, Handler> handlers_;
  bool dirty_ = false;          // something came in since the last poll
  Time deadline_ = kNever;      // by its own clock
  Time retryAt_ = Time::min();  // the world's time before which an overdue deadline waits
  int spins_ = 0;
};

/// A network of its own that carries the datagrams of a world's gateways.
class Medium {
 public:
  virtual ~Medium() = default;
  /// The endpoint of a gateway's socket.
  virtual Endpoint source(const Node& from, SocketId socket) const = 0;
  /// Carries a datagram, an IP packet of so many bytes, from there; what arrives is told by World::arrive().
  virtual void carry(WireDatagram&& wire, size_t bytes) = 0;
};

class World : public Timeline {
 public:
  /// Wake-ups in a row without a later deadline that count as a livelock. A real loop would eat a core.
  static constexpr int kMaxSpins = 50;
  /// Datagrams that one gateway sends at one moment before that counts as a livelock.
  static constexpr int kMaxBurst = 100000;

  explicit World(uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  uint64_t seed() const { return seed_; }

  Node& addNode(std::string name, TunnelOptions options = {});
  /// Makes two gateways peers: `initiator` knows an address of `responder`, not the other way round.
  void pair(Node& initiator, Node& responder, Duration keepalive = 10s);
  /// A path between two peers; `name` is also the initiator's uplink. Before start().
  Path& join(Node& initiator, Node& responder, const std::string& name, LinkOptions up, LinkOptions down,
             bool v6 = false);
  Path& path(std::string_view name);
  /// Adds one direction of a link that paths share: for Path::upVia and downVia.
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

  /// What no path carries goes there. `medium` outlives the world's last run.
  void attach(Medium& medium) { medium_ = &medium; }
  /// A datagram comes to a gateway's socket.
  void arrive(Node& to, const Route& from, const WireDatagram& wire);
  /// A datagram out of nowhere, as an attacker sends it.
  void inject(Node& to, const Route& from, ByteView bytes, Ecn ecn = Ecn::kNotEct);
  /// Sees every datagram before its link. `up`: from the initiator.
  std::function<void(Path&, bool up, const WireDatagram&)> onWire;

  /// Jumps to the next wake-up, at most to `limit`. False when there is none before it, or after a failure.
  bool step(Time limit);
  void run(Duration d);
  /// Runs until `done` holds; false when it does not within d.
  bool runUntil(const std::function<bool()>& done, Duration d);
  /// Empty unless a gateway livelocked; then who, and in which state.
  const std::string& failure() const { return failure_; }
  /// Of all datagrams sent so far, with their times and addresses.
  uint64_t hash() const { return hash_; }
  uint64_t unroutable() const { return unroutable_; }
  /// Where the gateways and paths stand, for failures.
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
  std::vector<Node*> withLan_;  // those with a link between device and host
  Medium* medium_ = nullptr;
  std::vector<std::unique_ptr<Path>> paths_;
  std::vector<std::unique_ptr<SharedLink>> links_;
  std::vector<Time> pathNext_, linkNext_;  // their next deliveries: up and down of each path; of each link
  std::vector<std::unique_ptr<Host>> hosts_;
  uint64_t hash_ = 0;
  uint64_t unroutable_ = 0;
  std::string failure_;
};

}  // namespace braid::sim
