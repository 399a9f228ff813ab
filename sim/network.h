#pragma once

// The networks of the papers, out of links that the subflows of a tunnel share.

#include <vector>

#include "sim/experiment.h"
#include "simnet/world.h"

namespace braid::sim {

/// A cable: one link in each direction. Clients are on its near side, servers on its far side.
struct Cable {
  SharedLink* up = nullptr;    ///< towards the server
  SharedLink* down = nullptr;  ///< towards the client, where the responses go
};

/// A world of gateways that are paired by two, each pair a "connection" of the papers.
class Network {
 public:
  Network(uint64_t seed, const TunnelOptions& options) : world(seed), options_(options) {}

  struct Pair {
    Node* client = nullptr;
    Node* server = nullptr;
  };
  World world;
  std::vector<Pair> pairs;

  Cable cable(const LinkOptions& up, const LinkOptions& down);
  Cable cable(const LinkOptions& both) { return cable(both, both); }
  /// A new pair without a path. Before start().
  Pair addPair() { return addPair(options_); }
  /// A new pair with options of its own.
  Pair addPair(const TunnelOptions& options);
  /// One more subflow of the pair, over these cables, from the client's side on.
  void join(const Pair& pair, const std::vector<Cable>& route);
  /// One more subflow of the pair, over a link of its own.
  Path& join(const Pair& pair, const std::string& name, const LinkOptions& up, const LinkOptions& down);
  /// Makes a link, or a path in both directions, lose so much as soon as the tunnels are up: the papers lose
  /// data packets, and the setup of a connection is not part of a flow's time.
  void lose(SharedLink& link, const Loss& loss) { lossy_.emplace_back(&link, loss); }
  void lose(Path& path, const Loss& loss) { lossyPaths_.emplace_back(&path, loss); }
  /// Starts all gateways and waits until each pair has all its subflows. Throws when that takes too long.
  void start();

 private:
  bool ready() const;
  TunnelOptions options_;
  std::vector<size_t> subflows_;  // of each pair
  std::vector<std::pair<SharedLink*, Loss>> lossy_;
  std::vector<std::pair<Path*, Loss>> lossyPaths_;
};

/// Throws what World::failure() says, if anything.
void requireSound(const World& world);

/// One pair and its network.
struct Connection {
  Network network;
  Network::Pair pair;
  Connection(uint64_t seed, const TunnelOptions& options) : network(seed, options), pair(network.addPair()) {}
  virtual ~Connection() = default;
};

/// CoFUSO section 6.1: the client has two links of 50 ms RTT to the server's one, all 1 Gbit/s with 5400 KB
/// of queue. The subflows are 2 over P1 and 1 over P2, which loses `p2` of what goes to the client.
struct Testbed : Connection {
  static constexpr Duration kRtt = 50ms;
  static constexpr double kRate = 1e9;
  static constexpr size_t kQueue = 5400 * 1000;
  Testbed(uint64_t seed, const TunnelOptions& options, const Loss& p2);
};

/// CoFUSO section 6.2, fig. 12: R1 - {R2..R5} - {R6..R9} - R10, hosts below R1 and R10. The figure is not in
/// our copy of the paper; we take every one of R2..R5 to be linked to every one of R6..R9 (16 links: "4 links
/// between routers R2-R9" are picked at random) and the delay to be the same on each of the 5 links of a
/// route.
struct Routers : Connection {
  static constexpr double kRate = 300e6;
  static constexpr Duration kRtt = 48ms;
  static constexpr size_t kLossy = 4;
  /// The lossy links are a matter of `layout`, the subflows' routes (ECMP) of `seed`.
  Routers(uint64_t seed, uint64_t layout, const TunnelOptions& options, size_t subflows, const Loss& loss);
};

/// FUSO fig. 5: hosts H1-H3 and H4-H6 below two ToR switches, three parallel paths between those; all 1
/// Gbit/s, RTT 280 us, 128 KB of buffer a port, ECN marks above 32 KB.
class Fabric {
 public:
  static constexpr double kRate = 1e9;
  static constexpr Duration kRtt = 280us;
  static constexpr size_t kBuffer = 128 << 10;
  static constexpr size_t kMarks = 32 << 10;
  static constexpr size_t kPaths = 3;
  static constexpr size_t kHosts = 6;

  /// `path`: loss of path P1, both directions; `edge`: loss of the access links of H4-H6, both directions.
  Fabric(uint64_t seed, const TunnelOptions& options, const Loss& path, const Loss& edge);

  /// A connection of `client` (1-6) to `server` (1-6) with so many subflows, hashed over the paths.
  Network::Pair connect(size_t client, size_t server, size_t subflows);
  /// Of the paths between the racks, P1 is 0.
  const Cable& path(size_t i) const { return paths_.at(i); }
  Network network;

 private:
  void lose(const Cable& cable, const Loss& loss);

  Random hash_;
  std::vector<Cable> paths_;
  std::vector<Cable> clientSide_, serverSide_;  // of each host
};

}  // namespace braid::sim
