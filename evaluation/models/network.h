#pragma once

// The networks of the papers, made of links that the subflows of a tunnel share.

#include <vector>

#include "evaluation/models/params.h"
#include "simnet/world.h"

namespace braid::sim {

/// A cable: one link in each direction. Clients are on its near side, servers on its far side.
struct Cable {
  SharedLink* up = nullptr;    ///< towards the server
  SharedLink* down = nullptr;  ///< towards the client, in the direction of the responses
};

/// A world of gateways in pairs. Each pair is what the papers call a connection.
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
  /// Adds a pair of gateways without a path. Call before start().
  Pair addPair() { return addPair(options_); }
  /// Adds a pair with its own options.
  Pair addPair(const TunnelOptions& options);
  /// Adds a subflow to the pair, over these cables in order from the client to the server.
  void join(const Pair& pair, const std::vector<Cable>& route);
  /// Adds a subflow to the pair, over its own link.
  Path& join(const Pair& pair, const std::string& name, const LinkOptions& up,
             const LinkOptions& down);
  /// Makes a link, or both directions of a path, lose packets once the tunnels are up. Losses do
  /// not begin earlier because in the papers only data packets are lost, and a flow's time does not
  /// include the connection setup.
  void lose(SharedLink& link, const Loss& loss) { lossy_.emplace_back(&link, loss); }
  void lose(Path& path, const Loss& loss) { lossyPaths_.emplace_back(&path, loss); }
  /// Starts all gateways and runs until each pair has all its subflows. Throws when that takes too
  /// long.
  void start();

 private:
  bool ready() const;
  TunnelOptions options_;
  std::vector<size_t> subflows_;  // of each pair
  std::vector<std::pair<SharedLink*, Loss>> lossy_;
  std::vector<std::pair<Path*, Loss>> lossyPaths_;
};

/// Throws World::failure() if it is not empty.
void requireSound(const World& world);

/// One pair of gateways and its network.
struct Connection {
  Network network;
  Network::Pair pair;
  Connection(uint64_t seed, const TunnelOptions& options)
      : network(seed, options), pair(network.addPair()) {}
  virtual ~Connection() = default;
};

/// CoFUSO section 6.1: the client has two links (paths P1 and P2), the server one; the RTT is 50
/// ms, and every link has 1 Gbit/s and a queue of 5400 KB. Two subflows use P1, one uses P2. P2
/// loses packets towards the client as `p2` says.
struct Testbed : Connection {
  static constexpr Duration kRtt = 50ms;
  static constexpr double kRate = 1e9;
  static constexpr size_t kQueue = 5400 * 1000;
  Testbed(uint64_t seed, const TunnelOptions& options, const Loss& p2);
};

/// CoFUSO section 6.2, fig. 12: R1 - {R2..R5} - {R6..R9} - R10, with hosts below R1 and R10. The
/// figure is missing from the copy of the paper that we used. Assumed: each of R2..R5 is linked to
/// each of R6..R9 (16 links, of which "4 links between routers R2-R9" are picked at random), and
/// all 5 links of a route have the same delay.
struct Routers : Connection {
  static constexpr double kRate = 300e6;
  static constexpr Duration kRtt = 48ms;
  static constexpr size_t kLossy = 4;
  /// `layout` decides which links are lossy, `seed` the subflows' routes (ECMP).
  Routers(uint64_t seed, uint64_t layout, const TunnelOptions& options, size_t subflows,
          const Loss& loss);
};

/// FUSO fig. 5: hosts H1-H3 and H4-H6 below two ToR switches with three parallel paths between
/// them. All links have 1 Gbit/s; the RTT is 280 us; each port has a buffer of 128 KB and marks
/// above 32 KB.
class Fabric {
 public:
  static constexpr double kRate = 1e9;
  static constexpr Duration kRtt = 280us;
  static constexpr size_t kBuffer = 128 << 10;
  static constexpr size_t kMarks = 32 << 10;
  static constexpr size_t kPaths = 3;
  static constexpr size_t kHosts = 6;

  /// `path`: loss of path P1, both directions; `edge`: loss of the access links of H4-H6, both
  /// directions.
  Fabric(uint64_t seed, const TunnelOptions& options, const Loss& path, const Loss& edge);

  /// Adds a connection from `client` (1-6) to `server` (1-6). Its subflows are hashed to the paths.
  Network::Pair connect(size_t client, size_t server, size_t subflows);
  /// A path between the racks; P1 has index 0.
  const Cable& path(size_t i) const { return paths_.at(i); }
  Network network;

 private:
  void lose(const Cable& cable, const Loss& loss);

  Random hash_;
  std::vector<Cable> paths_;
  std::vector<Cable> clientSide_, serverSide_;  // of each host
};

}  // namespace braid::sim
