#pragma once

// The configuration of a gateway: one YAML file, and a further file for each peer that is
// configured outside it (config_fragments.h). The reader is strict: it reports every mistake at
// once, with its place and a remedy. The keys are in the table of settings (settings.h); conf/
// holds ready-made examples.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/config/units.h"
#include "host/host.h"
#include "host/host_numbers.h"
#include "host/network.h"
#include "host/stream_host.h"
#include "inet/addresses.h"
#include "scheduler/path/path_tiers.h"
#include "tunnel/api/options.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/wire/aead.h"

namespace braid {

/// Where a gateway keeps the files that outlive its process, unless the configuration names other
/// places.
inline constexpr const char* kStateFolder = "/var/lib/braid";

struct ConfigNode;

/// Largest configuration file in bytes; a larger one is an error.
inline constexpr size_t kMaxConfigBytes = 1 << 20;
/// Largest lengths of lists.
inline constexpr size_t kMaxPeers = 1024;
inline constexpr size_t kMaxUplinks = 31;
inline constexpr size_t kMaxBypassMarks = 16;

/// `identity`: the gateway's identity. Paths are complete: a relative path in the file is relative
/// to the configuration file's folder, or to LoadOptions::credentials when the file exists there.
struct IdentityConfig {
  std::string key;          ///< PEM private key, readable by its owner only
  std::string certificate;  ///< PEM certificate of that key
};

/// `device`: the TUN or TAP interface that applications' packets are routed into.
/// TunnelOptions::mode says which of the two it is.
struct DeviceConfig {
  /// What becomes of packets to `routes` while no peer is up.
  enum class WhenDown : uint8_t {
    kUnset,   ///< while the daemon runs as kBlock; nothing outlives it
    kBlock,   ///< they are refused, also while no daemon runs
    kDirect,  ///< they take the host's own routes, with masquerade at the uplinks
  };
  std::string name = "braid0";
  std::vector<InterfaceAddress> addresses;
  std::vector<Prefix> routes;    ///< routed into the device, before the host's own routes
  std::vector<Prefix> networks;  ///< on this gateway's side: no peer sends from them
  size_t mtu = 0;      ///< inner MTU in bytes; 0: as the tunnel gives it (Tunnel::innerMtu)
  std::string bridge;  ///< TAP: the bridge that the device becomes a port of; empty: none
  WhenDown whenDown = WhenDown::kUnset;
  uint32_t markMask = 0xff;      ///< HostNumbers::markMask
  uint32_t rulePriority = 6000;  ///< HostNumbers::rulePriority
  /// What this host itself sends with one of these marks bypasses the tunnel and its guard.
  std::vector<MarkMatch> bypassMarks;
};

/// `offloads`: whether daemon and kernel exchange several packets in one piece.
struct OffloadsConfig {
  bool device = true;   ///< DeviceOptions::offloads
  bool sockets = true;  ///< SocketOptions::offloads
  bool operator==(const OffloadsConfig&) const = default;
};

/// One of `uplinks`: a local interface from which subflows to peers start.
struct UplinkConfig {
  /// The next hop of this uplink's packets.
  enum class Gateway : uint8_t {
    kAuto,     ///< the interface's own default route, whatever its metric; followed when it changes
    kNone,     ///< the routes of the host's main table
    kAddress,  ///< `gateways`, through this uplink's own routing table
  };
  std::string name;
  std::string interface;  ///< name or altname; it, `mac` or `path` names the interface
  std::string mac;        ///< lower case
  std::string path;       ///< Link::path
  LinkSelector selector() const { return {interface, mac, path}; }
  unsigned subflows =
      1;  ///< sockets (different source ports), 1 to 8: more than one for ECMP fabrics
  Gateway gateway = Gateway::kAuto;
  std::vector<Address> gateways;  ///< with kAddress: one, or one IPv4 and one IPv6
  /// Local addresses to use, at most one per family; empty: the interface's addresses.
  std::vector<Address> sources;
  /// DNS servers for the peers' names; empty: those that the host knows of the interface.
  std::vector<Address> resolvers{};
  PathPreference preference{};  ///< its `uplink` member is not set
  /// Most bytes per second that the peers may send towards this uplink; 0: no limit.
  uint64_t peerCeiling = 0;
  /// `metered`
  struct Meter {
    uint64_t cap = 0;  ///< most bytes in a period
    MeterPeriod period{};
    bool operator==(const Meter&) const = default;
  };
  std::optional<Meter> meter;
};

/// One of `peers`.
struct PeerConfig {
  PeerOptions options;  ///< `endpoints` holds the numeric endpoints of the file
  /// The endpoints given by host name. The daemon resolves them, and resolves them again when they
  /// stop working.
  std::vector<HostPort> hosts;
  std::string psk;   ///< file of options.psk, a complete path; empty: none
  std::string file;  ///< the fragment that it is configured in; empty: the main file
};

/// `streams`: which TCP connections end at the gateways. TunnelOptions::streams says whether there
/// are any, and how much memory they may use.
struct StreamsConfig {
  /// The client address that a server sees.
  enum class Source : uint8_t {
    kClient,  ///< the client's address and port
    kOwn,     ///< the far gateway's
  };
  /// When a client's connection is accepted.
  enum class Connect : uint8_t {
    kEarly,  ///< at once
    kFirst,  ///< when the server has accepted
  };
  /// By destination; empty: none.
  std::vector<StreamRule> match{{{}, 80, 80}, {{}, 443, 443}, {{}, 8080, 8080}, {{}, 8443, 8443}};
  std::vector<StreamRule> exclude;
  /// Networks whose hosts' connections may become streams; empty: all, or `device.networks` where
  /// these are given.
  std::vector<Prefix> from;
  /// Destinations at this side that peers' streams may reach; empty: those that the host would
  /// forward their packets to.
  std::vector<StreamRule> accept;
  Source source = Source::kClient;
  Connect connect = Connect::kEarly;
  size_t most = 65536;  ///< most connections at once; fewer where the process may open fewer files
};

/// `forwarding`, `nat`, `forwards`: what the host does for packets of other hosts.
struct RouterConfig {
  bool forwarding = false;
  bool natV4 = false, natV6 = false;
  std::vector<PortForward> forwards;
};

/// `portal-check`: whether captive portals are looked for, and of which pages hosts of the LAN
/// reach the web server itself while no peer is up.
enum class PortalCheck : uint8_t {
  kOff,
  kOn,   ///< those on the uplink's own link
  kAny,  ///< all
};

/// `dns`: name servers that are reached through the tunnel. `braidctl dns` hands them to the host.
struct DnsConfig {
  std::vector<Address> servers;
  std::vector<std::string> domains;  ///< the names that they are asked for; empty: all
};

/// `control`: the socket that braidctl talks to; its mode is 0660.
struct ControlConfig {
  std::string socket;  ///< default: /run/braid/NAME.sock for a file NAME.yaml
  std::string group;   ///< group of the socket; empty: the process's
};

/// One mistake in a configuration file, or a warning about what is valid but rarely intended.
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

/// The text of a file.
struct ConfigText {
  std::string file, text;
  bool operator==(const ConfigText&) const = default;
};

/// What a configuration was read from: the main file, and the fragments in the order of their
/// names.
struct ConfigTexts {
  std::string main;
  std::vector<ConfigText> fragments;
  bool operator==(const ConfigTexts&) const = default;
};

/// A whole, valid configuration.
struct Config {
  std::string path;   ///< the file it came from
  ConfigTexts texts;  ///< what was read
  IdentityConfig identity;
  DeviceConfig device;
  OffloadsConfig offloads;
  std::vector<UplinkConfig> uplinks;  ///< initiator side
  std::vector<Endpoint> listen;       ///< responder side
  std::vector<PeerConfig> peers;
  ControlConfig control;
  TunnelOptions tunnel;
  StreamsConfig streams;
  RouterConfig router;
  DnsConfig dns;
  PortalCheck portals = PortalCheck::kOn;
  /// The cipher to use; nullopt: the one that is fastest on both sides' processors.
  std::optional<AeadKind> cipher;
  /// Folder of further peers, one file each (config_fragments.h); a complete path; empty: none.
  std::string peersFolder;
  std::string state;  ///< file that holds the byte counts of metered uplinks, a complete path
  std::string trace;  ///< file of the recovery trace, a complete path; empty: none
  std::string logLevel = "info";  ///< trace, debug, info, warning, error
  ConfigErrors warnings;          ///< mistakes that do not keep the gateway from starting
};

/// The packet marks, routing tables and rule priorities of a gateway in its slot of the host
/// (Host::slot()). Of another process than the gateway's, which does not know the slot, only what
/// does not depend on it counts.
inline HostNumbers numbersOf(const Config& config, unsigned slot = 0) {
  return {config.device.markMask, config.device.rulePriority, slot};
}

/// "IPv4" or "IPv6": the address family that these routes leave to the host's own routes while they
/// cover all of the other family; empty: neither. All of IPv6 means globalUnicast().
std::string familyLeftOut(const std::vector<Prefix>& routes);

/// Whether these routes cover all of an address family.
bool takeAFamily(const std::vector<Prefix>& routes);

/// What the reader takes from its environment.
struct LoadOptions {
  /// Folder in which relative paths of the identity and of `psk` are looked up first
  /// ($CREDENTIALS_DIRECTORY under systemd); empty: none.
  std::string credentials;
  /// Reads key, certificate and the peers' pre-shared keys as well. Checks that key and certificate
  /// belong together and that the keys are private.
  bool checkIdentity = true;
  /// The pin of a gateway that runs: its key and certificate are in use, and not read again.
  std::optional<Pin> ownPin;
  /// The peers of a gateway that runs: their pre-shared keys are in use, and not read again.
  /// nullptr: none.
  const std::vector<PeerConfig>* peersInUse = nullptr;
};

using ConfigResult = std::variant<Config, ConfigErrors>;

/// Reads and checks a file, with the fragments of its `peers-folder`. Errors come in the order of
/// their lines. Throws nothing except std::bad_alloc. `tree`: receives the tree of a valid file, to
/// look up places.
ConfigResult loadConfig(const std::string& path, const LoadOptions& options = {},
                        ConfigNode* tree = nullptr);
/// Checks the text of a file and of these fragments; reads no further fragments. `path` is used in
/// messages, and relative paths start from its folder.
ConfigResult parseConfig(std::string_view text, const std::string& path,
                         const LoadOptions& options = {},
                         std::span<const ConfigText> fragments = {});
/// The configuration `before` with another text of one fragment, or without that fragment when
/// `text` is nullopt. Reads no configuration file, so what was edited since does not count.
ConfigResult withFragment(const Config& before, const std::string& file,
                          const std::optional<std::string>& text, const LoadOptions& options);
/// Compares the files of a configuration with what it was read from. Returns that they were edited,
/// or the first of their mistakes; empty: they are the same, but for comments.
std::string unappliedEdits(const Config& config, const LoadOptions& options);

}  // namespace braid
