#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/log/log.h"
#include "gateway/proxy/accept_policy.h"
#include "gateway/proxy/first_connects.h"
#include "gateway/proxy/intercept_policy.h"
#include "gateway/proxy/proxy_connection.h"
#include "host/host.h"
#include "tunnel/api/streams.h"

namespace braid {

/// The TCP connections at this gateway's ends of streams. Takes over connections of local hosts,
/// opens connections to local hosts, and connects each with its stream. Local hosts are those
/// behind this gateway.
class TcpProxy : private StreamObserver {
 public:
  /// Most connections accepted per turn of the event loop, so that other work waits at most about a
  /// millisecond.
  static constexpr size_t kAccepts = 64;
  /// Most connections to local hosts opened per turn, taken from the peers in turn; further ones
  /// wait for the next turn. At 50 us each, packets wait at most about a millisecond.
  static constexpr size_t kConnects = 16;
  /// Time in which a local host must answer a SYN. Linux sends five SYNs in it, the last one 15 s
  /// after the first.
  static constexpr Duration kConnectTime = 20s;
  /// How long a connection that was taken over waits for room, in the kernel's queue or here; then
  /// it is reset. Even on a busy machine, the connections of a burst have made room by then.
  static constexpr Duration kPatience = 5s;
  /// Most connections that wait here because their peer, or this gateway, has no room. There is a
  /// limit because each turn looks at all of them. Further connections stay in the kernel's queue
  /// until half of these have left, and connections to other peers wait behind them. New
  /// connections are carried as packets meanwhile.
  static constexpr size_t kMostWaiting = 512;
  /// The waiting connections are tried again after this time, if nothing happens before.
  static constexpr Duration kLookAgain = 10ms;
  /// Pause in accepting connections after the system had no descriptor or no memory for one.
  static constexpr Duration kPause = 100ms;

  /// `device`: name of the gateway's interface. All other arguments must outlive this. Throws
  /// SystemError.
  TcpProxy(Host& host, const NetworkMonitor& monitor, const std::string& device, StreamApi& lanes,
           PacketPool& pool, LogLimiter& log);
  ~TcpProxy() override;
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  /// `uplinks`: the names of the uplinks' interfaces. `numbers`: the gateway's marks and tables.
  void configure(const Config& config, const std::vector<std::string>& uplinks,
                 const HostNumbers& numbers, Time now);
  /// The uplinks' interfaces have other names than before. Call onChange() afterwards.
  void setUplinks(const std::vector<std::string>& interfaces) { policy_.setUplinks(interfaces); }
  /// Most connections under this configuration: fewer than configured where the host allows no
  /// more.
  size_t most(const Config& config) const;
  /// Call when what the peers can open, or the host's interfaces or default routes, may have
  /// changed.
  void onChange(Time now);
  /// Is shown each packet that comes out of the device. Returns true, and has taken it, when it
  /// begins a connection that is to become a stream (`connect: first`), or says that a connection
  /// to a local host cannot be made.
  bool onPacket(Packet& packet, Time now);
  /// Takes the next packet for the device or the tunnel; nullopt when there is none. Call until
  /// then after each turn().
  std::optional<PendingConnects::Output> pollPacket() {
    if (!first_.hasOutput()) return std::nullopt;
    return first_.poll(clock_.now());
  }
  /// Does what is due. Returns true when more is left: call again at once.
  bool turn(Time now);
  /// Whether the last turn used the streams, so that the tunnel may have datagrams to send.
  bool hasActed() const { return acted_; }
  Time deadline() const;
  /// Before a restart, which resets what is open: starts no new stream until this time, or until
  /// configure(). Connections of local hosts are carried as packets. The peers' openings are
  /// refused with StreamCause::kLimit, so that the peers leave further connections to packets.
  void drain(Time until, Time now);
  /// Ends every connection with a reset.
  void stop();

  StreamFigures figures() const;

 private:
  struct Attempt {
    StreamHandle stream;
    Time until;
  };

  struct Waiting {
    StreamHost::Accepted accepted;
    Time until;
  };

  void onAcceptable() override;
  void onReady(uint64_t tag, Ready ready) override;

  void take(StreamHost::Accepted&& accepted, Time now);
  bool open(StreamHost::Accepted& accepted, StreamHandle stream, Time now);
  void takeWaiting(Time now);
  void acceptAgain(Time now);
  /// False: events that open connections are left for the next turn.
  bool takeEvents(Time now);
  void onEvent(const StreamEvent& event, Time now);
  bool onUnreachable(ByteView packet, Time now);
  void connect(StreamHandle stream, Time now);
  void refuse(StreamHandle stream, StreamCause cause, Time now);
  void add(StreamHandle stream, std::unique_ptr<StreamSocket> socket,
           const std::optional<StreamPair>& taken);
  ProxyConnection* find(StreamHandle stream);
  void list(ProxyConnection& pump);
  void move(ProxyConnection& pump, Time now);
  void drop(StreamHandle stream);
  void expire(Time now);
  void pause(Time until);
  size_t used() const { return open_ + waiting_.size() + first_.size(); }
  bool hasRoom() const { return used() < bound_; }
  /// The connections in `first_` have room already.
  bool mayTake() const { return hasRoom() || first_.size() > 0; }
  bool mayAccept() const { return mayTake() && waiting_.size() < kMostWaiting; }
  bool mayAcceptAgain() const { return mayTake() && waiting_.size() <= kMostWaiting / 2; }
  void watchRoom(Time now);
  void noteRoom(const Address& destination);

  const Clock& clock_;
  const NetworkMonitor& monitor_;
  StreamApi& lanes_;
  std::string device_;
  std::unique_ptr<StreamHost> host_;
  InterceptPolicy policy_;
  AcceptPolicy accept_;
  std::vector<std::unique_ptr<ProxyConnection>> pumps_;  ///< by StreamHandle::place
  std::vector<StreamHandle> ready_, moving_;  ///< streams whose connections have something to do
  std::deque<Attempt> attempts_;              ///< connections being opened, oldest first
  std::vector<Waiting> waiting_;  ///< taken over, and not yet opened for want of room; oldest first
  size_t open_ = 0, most_ = 0;
  size_t connects_ = 0;  ///< opened in this turn
  size_t bound_ = 0;     ///< at most `most_`; less when the process ran out of descriptors
  bool clientsSource_ = true;
  bool full_ = false;
  bool isPeerFull_ = false;  ///< some peer has no room: `policy_` must be updated
  bool acted_ = false;
  Time drainUntil_ = kNever;   ///< kNever: new streams may be opened
  Time acceptAgain_ = kNever;  ///< kNever: connections are accepted now
  Time lookAgain_ = kNever;    ///< when to look at `waiting_` again; kNever: it is empty
  /// The time up to which connections may wait for room in the kernel's queue. Those that are still
  /// there then are turned away until the queue is empty. kNever: none waits for room.
  Time roomBy_ = kNever;
  StreamFigures figures_;
  FirstConnects first_;
};

}  // namespace braid
