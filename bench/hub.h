#pragma once

// A concentrator and its edges in virtual time, for benchmarks of many peers and flows: all of them are up.
//
//     edges, each with flows of its own ==== 10 ms ==== concentrator

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "base/ring.h"
#include "base/time.h"
#include "simnet/fake_handshake.h"
#include "tunnel/tunnel.h"

namespace braid::sim {

inline constexpr Duration kTick = 100us;  // between two turns of the busy gateways
inline constexpr size_t kBatch = 8;       // inner packets that a driver finds in a turn
inline constexpr unsigned kManyPeers = 1000;
inline constexpr unsigned kManyFlows = 100;  // of each of them

/// CPU time of this thread, in which no other program has a part.
double cpuSeconds();

/// Whose packets a turn brings.
struct Train {
  unsigned edge;
  uint16_t flow;
};

class Edge;
class HeapGrowth;

/// Whether a Hub counts what it holds, which takes longer than its work.
enum class Counts : uint8_t { kNothing, kMemory };

/// A concentrator and its edges.
class Hub {
 public:
  /// `ceiling`: bytes per second that it may send to each edge; 0: any. `keepalive`: how often an idle edge says something.
  explicit Hub(unsigned edges, Counts counts = Counts::kNothing, uint64_t ceiling = 0,
               Duration keepalive = 10s);
  ~Hub();

  /// One turn of the concentrator and of the train's edge with a batch of packets towards that, or from it; the
  /// other edges get their turn when they have something to do. Returns the CPU seconds that the concentrator took.
  double step(bool down, Train train);
  /// Lets all happen that is due until `time` after the last step. Returns the CPU seconds that the concentrator took.
  double pass(Duration time);
  /// Bytes that the concentrator's core has allocated for peers and flows, buffers of packets not among them.
  int64_t held() const { return held_; }
  /// Its core, and the time there.
  const Tunnel& tunnel() const { return tunnel_; }
  Time now() const { return now_; }
  /// Inner packets that arrived at the far end.
  uint64_t delivered() const { return delivered_; }
  /// Datagrams that came to the hub.
  uint64_t received() const { return received_; }
  /// Throws when a peer is no longer up: the figure would be that of fewer peers.
  void checkPeers();

 private:
  struct Flight {
    Time at;
    size_t edge;  ///< from which, or to which
    Packet bytes;
  };

  static TunnelOptions options();
  void connect(unsigned number, uint64_t ceiling, Duration keepalive);
  double advance();
  Time nextEvent() const;
  void watch(std::optional<HeapGrowth>& growth);
  void take(std::array<Packet, kBatch>& packets);
  size_t turnHub();
  size_t turnEdge(size_t number);
  void deliverToHub();
  void deliverToEdges();

  Endpoint server_ = *Endpoint::parse("198.51.100.1:4433");
  /// Of the concentrator, and of all edges together.
  static constexpr size_t kPoolPackets = 40'000;

  PacketPool pool_{2048, kPoolPackets};
  PacketPool edgePool_{2048, kPoolPackets};
  Ring<Flight> toHub_, toEdges_;
  Ring<Datagram> sent_;
  Time now_ = Time{} + 1s;
  FakeHandshakeProvider handshakes_{pinOf(1), 1};
  Tunnel tunnel_{options(), pool_, handshakes_, knownKey(1)};
  std::vector<Endpoint> outer_;
  std::map<Endpoint, size_t> numbers_;
  std::vector<std::unique_ptr<Edge>> edges_;
  std::set<std::pair<Time, size_t>> deadlines_;  ///< of the edges
  std::vector<Time> deadlineOf_;
  uint64_t delivered_ = 0;
  uint64_t received_ = 0;
  Counts counts_;
  int64_t held_ = 0;
};

/// Trains for the last `busy` of the edges in turn, of each for the next of its flows.
class Trains {
 public:
  Trains(unsigned edges, unsigned busy, unsigned flows) : edges_(edges), busy_(busy), flows_(flows) {}
  Train next() {
    unsigned number = count_++ % round();
    return {edges_ - 1 - number % busy_, static_cast<uint16_t>(number / busy_)};
  }
  /// Turns until each flow had one.
  unsigned round() const { return busy_ * flows_; }

 private:
  unsigned edges_;
  unsigned busy_;
  unsigned flows_;
  unsigned count_ = 0;
};

}  // namespace braid::sim
