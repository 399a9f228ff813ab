#pragma once

// A concentrator and its edges in virtual time, for benchmarks with many peers and flows. All peers
// are up.
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

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"
#include "simnet/fake_handshake.h"
#include "tunnel/tunnel.h"

namespace braid::sim {

inline constexpr Duration kTick = 100us;  // between two turns of the busy gateways
inline constexpr size_t kBatch = 8;       // inner packets that a driver reads per turn
inline constexpr unsigned kManyPeers = 1000;
inline constexpr unsigned kManyFlows = 100;  // of each of them

/// CPU time of this thread, which excludes other programs.
double cpuSeconds();

/// The edge and flow of the packets in a turn.
struct Train {
  unsigned edge;
  uint16_t flow;
};

class Edge;
class HeapGrowth;

/// Whether a Hub measures its memory, which takes longer than its work.
enum class Counts : uint8_t { kNothing, kMemory };

/// A concentrator and its edges.
class Hub {
 public:
  /// `ceiling`: bytes per second that the concentrator may send to each edge; 0: unlimited.
  /// `keepalive`: keepalive interval of an idle edge.
  explicit Hub(unsigned edges, Counts counts = Counts::kNothing, uint64_t ceiling = 0,
               Duration keepalive = 10s);
  ~Hub();

  /// One turn of the concentrator and of the train's edge, with a batch of packets to or from that
  /// edge. Other edges get a turn when they have something to do. Returns the concentrator's CPU
  /// time, seconds.
  double step(bool down, Train train);
  /// Handles everything that is due until `time` after the last step. Returns the concentrator's
  /// CPU time, seconds.
  double pass(Duration time);
  /// Bytes that the concentrator's core has allocated for peers and flows, without packet buffers.
  int64_t held() const { return held_; }
  /// The concentrator's core, and its time.
  const Tunnel& tunnel() const { return tunnel_; }
  Time now() const { return now_; }
  /// Inner packets that arrived at the far end.
  uint64_t delivered() const { return delivered_; }
  /// Datagrams that arrived at the concentrator.
  uint64_t received() const { return received_; }
  /// Throws when a peer is no longer up, because the result would be that of fewer peers.
  void checkPeers();

 private:
  struct Flight {
    Time at;
    size_t edge;  ///< source or destination edge
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
  /// Packet buffers of the concentrator, and of all edges together.
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

/// Makes trains for the last `busy` edges in turn, each time for the edge's next flow.
class Trains {
 public:
  Trains(unsigned edges, unsigned busy, unsigned flows)
      : edges_(edges), busy_(busy), flows_(flows) {}
  Train next() {
    unsigned number = count_++ % round();
    return {edges_ - 1 - number % busy_, static_cast<uint16_t>(number / busy_)};
  }
  /// Number of turns until each flow had a train.
  unsigned round() const { return busy_ * flows_; }

 private:
  unsigned edges_;
  unsigned busy_;
  unsigned flows_;
  unsigned count_ = 0;
};

}  // namespace braid::sim
