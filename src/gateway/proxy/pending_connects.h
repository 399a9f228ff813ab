#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"
#include "gateway/proxy/given_back.h"
#include "tunnel/api/streams.h"

namespace braid {

/// Connections of local hosts that are not accepted before their destination has accepted
/// (`streams.connect: first`). For each there is a stream, and the packet that begins it (SYN) is
/// kept here. What becomes of a connection:
///
///     the destination accepts    the SYN is to go to this host's listener, which then accepts the
///                                connection; join() gives it its stream
///     it refuses                 the client is to get a RST
///     it cannot be reached       an ICMP error
///     it does not answer         nothing; the client repeats its SYN, and gives up some time
///     the peer takes no stream   the SYN is to cross the tunnel as a packet
///     its session ends           likewise
///     the client gives up        the stream is to be reset; see expire()
///
/// Does no I/O: the owner polls packets and delivers them.
class PendingConnects {
 public:
  /// Most connections at once. Chosen: a /16 network that is scanned at the rate that a peer takes
  /// streams by default (256 a second) fills it in 4 s; then connections are carried as packets.
  static constexpr size_t kMost = 1024;
  /// A client that has not repeated its SYN for this time, and twice the time for which it has
  /// tried, has given up. Hosts wait for 1 s or 3 s at first, and double that (RFC 6298 section 2).
  static constexpr Duration kPause = 4s;
  /// How long a connection is kept at most without a word about its destination. The far gateway
  /// tells a destination's silence after 20 s (TcpProxy::kConnectTime).
  static constexpr Duration kLongest = 25s;
  /// How long the listener may take to accept a connection after its destination has accepted. A
  /// host that has gone meanwhile never completes it.
  static constexpr Duration kJoin = 5s;
  /// `pool` must outlive this.
  explicit PendingConnects(PacketPool& pool) : pool_(pool) {}

  /// The connections that wait.
  size_t size() const { return entries_.size(); }
  bool isFull() const { return size() >= kMost; }

  /// Whether such a SYN repeats one of a connection here.
  bool isCopy(const Beginning& of) const;
  /// Keeps a new connection. `stream`: opened by StreamApi::openAsking(). isFull() must be false,
  /// and repeat() has returned false.
  void add(StreamHandle stream, const Beginning& of, Packet syn, Time now);
  /// A client's SYN has come. Returns true, and has taken it, when a connection with its ends
  /// waits.
  bool repeat(const Beginning& of, Packet& syn, Time now);

  /// The ends of the connection that waits with this stream; nullptr: none does.
  const StreamEnds* find(StreamHandle stream) const;
  /// The destination has accepted. Does nothing when that was known, or the stream is unknown.
  void onAnswer(StreamHandle stream, Time now);
  /// The stream has ended. Returns whether the client is now refused, or left without an answer.
  bool onReset(StreamHandle stream, StreamCause cause, Time now);

  /// The listener has accepted a connection. Returns its stream, empty when that has ended since
  /// the destination accepted; nullopt: the connection is unknown here.
  std::optional<StreamHandle> join(const StreamEnds& ends);
  /// A connection that nobody waits for any more.
  struct Expired {
    StreamHandle stream;      ///< is to be reset; empty: there is none
    bool isAnswered = false;  ///< its destination has accepted
  };
  /// Forgets such a connection; nullopt: there is none. Call again until then, at deadline().
  std::optional<Expired> expire(Time now);
  Time deadline() const { return due_.empty() ? kNever : due_.begin()->first; }

  /// To which one a packet is to be delivered.
  enum class Way : uint8_t {
    kListener,  ///< a SYN, to StreamHost::giveBack()
    kHost,      ///< an answer to the client, to the device
    kTunnel,    ///< a SYN, as any packet of a host
  };
  struct Output {
    Way way;
    Packet packet;
  };
  /// Takes the next packet; nullopt when there is none.
  std::optional<Output> poll();
  bool hasOutput() const { return !output_.empty(); }

 private:
  struct Entry {
    StreamHandle stream{};  ///< empty: it ended after the destination had accepted
    Packet syn{};           ///< the client's last one; empty once the listener has it
    uint32_t sequence = 0;  ///< its number
    Time begun{};           ///< when the client began, or the destination accepted
    Time repeated{};        ///< when the last SYN came, or the destination accepted
    bool isAnswered = false;
    Time due{};  ///< when nobody waits for it any more
  };
  using Entries = std::map<StreamEnds, Entry>;

  Entries::iterator at(StreamHandle stream);
  void setDue(Entries::iterator at);
  void remove(Entries::iterator at);
  /// False: the client is not refused, because its SYN is to cross the tunnel.
  bool refuse(Entry& entry, StreamCause cause);

  PacketPool& pool_;
  Entries entries_;
  std::map<StreamHandle, Entries::iterator> byStream_;
  std::set<std::pair<Time, StreamEnds>> due_;
  Ring<Output> output_;
};

}  // namespace braid
