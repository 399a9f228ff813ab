#pragma once

// The configuration of a gateway: one YAML file, and one more for each peer that stands apart (config_fragments.h), read
// whole and strictly. docs/operations.md describes the keys, conf/ holds ready examples. Every mistake is reported at
// once, with its place and a remedy.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/config/meter_period.h"
#include "host/host_network.h"
#include "host/resolver.h"
#include "host/stream_host.h"
#include "host/translator.h"
#include "inet/endpoint.h"
#include "inet/prefix.h"
#include "scheduler/path/path_tiers.h"
#include "tunnel/handshake.h"
#include "tunnel/options.h"
#include "tunnel/wire/aead_cipher.h"

namespace braid {

/// Where a gateway keeps what outlives it, unless the configuration names other places.
inline constexpr const char* kStateFolder = "/var/lib/braid";

struct ConfigNode;

/// Largest configuration file in bytes; a larger one is an error.
inline constexpr size_t kMaxConfigBytes = 1 << 20;
/// What lists may hold at most.
inline constexpr size_t kMaxPeers = 1024;
inline constexpr size_t kMaxUplinks = 32;

/// `identity`: who this gateway is. Paths are complete: a relative path counts from the configuration file's
/// folder, or from LoadOptions::credentials when the file is there.
struct IdentityConfig {
  std::string key;          ///< PEM private key, readable by its owner only
  std::string certificate;  ///< PEM certificate of that key
};

/// `device`: the TUN or TAP interface that applications' packets are routed into. Which of the two is
/// TunnelOptions::mode.
struct DeviceConfig {
  std::string name = "braid0";
  std::vector<InterfaceAddress> addresses;
  std::vector<Prefix> routes;    ///< routed into the device; nothing else of the host's routes is touched
  std::vector<Prefix> networks;  ///< on this side: no peer sends from them
  size_t mtu = 0;                ///< inner MTU in bytes; 0: follows the tunnel (Tunnel::innerMtu)
  std::string bridge;            ///< TAP: the bridge that the device becomes a port of; empty: none
};

/// `offloads`: what goes between daemon and kernel in larger pieces.
struct OffloadsConfig {
  bool device = true;   ///< DeviceOptions::offloads
  bool sockets = true;  ///< SocketOptions::offloads
  bool operator==(const OffloadsConfig&) const = default;
};

/// One of `uplinks`: a local interface that subflows to peers start from.
struct UplinkConfig {
  /// Where packets of this uplink go first.
  enum class Gateway : uint8_t {
    kAuto,     ///< the interface's own default route, whatever its metric; followed when it changes
    kNone,     ///< the routes of the host's main table
    kAddress,  ///< `gateways`, by a routing table of this uplink's own
  };
  std::string name;
  std::string interface;
  unsigned subflows = 1;  ///< sockets (different source ports), 1 to 8: more than one for ECMP fabrics
  Gateway gateway = Gateway::kAuto;
  std::vector<Address> gateways;  ///< with kAddress: one, or one IPv4 and one IPv6
  std::vector<Address> sources;   ///< local addresses to use, at most one per family; empty: the interface's
  PathPreference preference{};    ///< its `uplink` is not set
  uint64_t peerCeiling = 0;       ///< bytes per second towards this uplink; 0: none
  /// `metered`
  struct Meter {
    uint64_t cap = 0;  ///< bytes in a period
    MeterPeriod period{};
    bool operator==(const Meter&) const = default;
  };
  std::optional<Meter> meter;
};

/// One of `peers`.
struct PeerConfig {
  PeerOptions options;  ///< its `endpoints` holds the numeric ones of the file
  /// The endpoints with a host name: resolved by the daemon, and again when they stop working.
  std::vector<HostPort> hosts;
  std::string file;  ///< the fragment that it stands in; empty: the main file
};

/// `streams`: which TCP connections end at the gateways. What streams may hold is TunnelOptions::streams, and whether
/// there are any.
struct StreamsConfig {
  /// What a server sees as the client.
  enum class Source : uint8_t {
    kClient,  ///< the client's address and port
    kOwn,     ///< the far gateway's
  };
  std::vector<StreamRule> match;  ///< of the destinations; empty: none
  std::vector<StreamRule> exclude;
  Source source = Source::kClient;
  size_t most = 65536;  ///< connections at once; fewer where the process may open fewer files
};

/// `forwarding`, `nat`, `forwards`: what the host does for packets of others.
struct RouterConfig {
  bool forwarding = false;
  bool natV4 = false, natV6 = false;
  std::vector<PortForward> forwards;
};

/// `control`: the socket that braidctl talks to; its mode is 0660.
struct ControlConfig {
  std::string socket;  ///< default: /run/braid/NAME.sock for a file NAME.yaml
  std::string group;   ///< group of the socket; empty: the process's
};

/// One mistake in a configuration file, or what is right and rarely meant.
struct ConfigError {
  std::string file;
  unsigned line = 0;    ///< from 1; 0: the file as a whole
  unsigned column = 0;  ///< from 1
  std::string key;      ///< "peers[0].pin"; empty: the file as a whole
  std::string problem;  ///< what is wrong
  std::string remedy;   ///< what to do about it
  /// "edge.yaml:12:9: peers[0].pin: what is wrong; remedy"
  std::string toString() const;
};
using ConfigErrors = std::vector<ConfigError>;

/// Threads that carry packets, at most.
inline constexpr unsigned kMostWorkers = AeadCipher::kLanes;

/// A whole, valid configuration.
struct Config {
  std::string path;  ///< the file it came from
  IdentityConfig identity;
  DeviceConfig device;
  OffloadsConfig offloads;
  unsigned workers = 1;               ///< threads that carry packets, 1 to kMostWorkers; 0: workersFor()
  std::vector<UplinkConfig> uplinks;  ///< initiator side
  std::vector<Endpoint> listen;       ///< responder side
  std::vector<PeerConfig> peers;
  ControlConfig control;
  TunnelOptions tunnel;
  StreamsConfig streams;
  RouterConfig router;
  std::optional<AeadKind> cipher;  ///< nullopt: what both sides' processors do fastest
  /// Folder of further peers, one file each (config_fragments.h), a complete path; empty: none.
  std::string peersFolder;
  std::string state;              ///< file of the counts of metered uplinks, a complete path
  std::string trace;              ///< file of the recovery trace, a complete path; empty: none
  std::string logLevel = "info";  ///< trace, debug, info, warning, error
  ConfigErrors warnings;          ///< what keeps nothing from starting
};

/// "IPv4" or "IPv6": what these routes leave to the host's own while they take all of the other; empty: nothing. All of
/// IPv6 is 2000::/3 (RFC 4291 section 2.4: global unicast).
std::string familyLeftOut(const std::vector<Prefix>& routes);

/// What the reader takes from its surroundings.
struct LoadOptions {
  /// Folder that is searched first for the identity's relative paths ($CREDENTIALS_DIRECTORY under systemd);
  /// empty: none.
  std::string credentials;
  /// Reads key and certificate as well, checks that they belong together and that the key is private.
  bool checkIdentity = true;
};

using ConfigResult = std::variant<Config, ConfigErrors>;

/// Threads for a machine of so many processors: one below four, else half of them, three at most.
constexpr unsigned workersFor(unsigned processors) {
  return processors < 4 ? 1 : std::min(processors / 2, 3u);
}
/// Threads that the configuration asks for on this machine.
unsigned workersOf(const Config& config);

/// Reads and checks a file with the fragments of its `peers-folder`. Errors come in the order of their lines. Throws
/// nothing but std::bad_alloc. `tree`: gets that of a right file, for its places.
ConfigResult loadConfig(const std::string& path, const LoadOptions& options = {}, ConfigNode* tree = nullptr);
/// The text of a file that is already read.
struct ConfigText {
  std::string file, text;
};
/// Checks a text and those of fragments, without looking for more of these; `path` is for messages, and the base of
/// relative paths.
ConfigResult parseConfig(std::string_view text, const std::string& path, const LoadOptions& options = {},
                         std::span<const ConfigText> fragments = {});

}  // namespace braid
