// The table of settings: the host's side, that is, identity, device, uplinks, peers, and what the
// host does for others. settings_traffic.cc has the sections about traffic.

#include "gateway/config/config_checks.h"
#include "gateway/config/config_values.h"
#include "gateway/config/setting_values.h"
#include "inet/ip.h"

namespace braid::setting {
namespace {

constexpr uint64_t kSmallestMtu = 576;  // RFC 791: every IPv4 host accepts packets of this size
constexpr uint64_t kLargestMtu = 9216;  // jumbo frames
constexpr std::string_view kLogLevels[] = {"trace", "debug", "info", "warning", "error"};
constexpr Named<TunnelOptions::Mode> kModes[] = {{"tun", TunnelOptions::Mode::kTun},
                                                 {"tap", TunnelOptions::Mode::kTap}};
constexpr Named<PathUse> kUses[] = {
    {"normal", PathUse::kNormal}, {"metered", PathUse::kMetered}, {"backup", PathUse::kBackup}};
constexpr Named<MeterPeriod::Unit> kPeriods[] = {{"day", MeterPeriod::Unit::kDay},
                                                 {"week", MeterPeriod::Unit::kWeek},
                                                 {"month", MeterPeriod::Unit::kMonth}};
constexpr Named<uint8_t> kForwardProtocols[] = {{"tcp", ip::kTcp}, {"udp", ip::kUdp}};
constexpr Named<DeviceConfig::WhenDown> kWhenDown[] = {{"block", DeviceConfig::WhenDown::kBlock},
                                                       {"direct", DeviceConfig::WhenDown::kDirect}};
constexpr Named<bool> kForwardSources[] = {{"client", false}, {"own", true}};
constexpr size_t kMaxResolvers = 4;
/// There is a limit because each new connection is compared with all forwards.
constexpr size_t kMaxForwards = 256;

}  // namespace

std::vector<Setting> hostSettings() {
  return {
      {"", "identity",
       section().required("add 'identity: {key: NAME.key, certificate: NAME.crt}'; "
                          "'braidctl keygen NAME' makes the two files"),
       kReload, "this gateway's key and certificate"},
      {"", "device", section(), kReload, "the TUN or TAP device"},
      {"", "offloads", section(), kReload, "exchange of larger pieces between daemon and kernel"},
      {"", "uplinks",
       items(BRAID_MEMBER(uplinks), kMaxUplinks, checkUplink).checkedBy(checkUplinks), kReload,
       "from where this gateway starts sessions"},
      {"", "listen",
       listOf(BRAID_MEMBER(listen), 32, "of `ADDRESS:PORT` or `[ADDRESS]:PORT`", readEndpoint)
           .checkedBy(checkListen),
       kReload,
       "where peers reach this gateway, numeric; `0.0.0.0` and `[::]` are every address of the "
       "one family"},
      {"", "peers",
       byCheck("list of up to 1024", "")
           .required("add the gateways at the other end with name, pin and prefixes"),
       kReload, "the gateways at the other end; a gateway that listens may have none"},
      {"", "peers-folder",
       by(BRAID_MEMBER(peersFolder), "complete path",
          "`/var/lib/braid/NAME.peers.d` for a file `NAME.yaml`", readPeersFolder),
       kRestart,
       "folder of further peers; need not exist. The daemon writes joining gateways there, and "
       "makes it, and its parent folder as that of `state`"},
      {"", "control", section(), kReload, "the control socket"},
      {"", "recovery", section().checkedBy(checkRecovery), kReload, "copies and parities"},
      {"", "tunnel", section().checkedBy(checkTunnel), kReload, "how packets are sent"},
      {"", "streams", section().withDefault("none").checkedBy(checkStreams), kReload,
       "TCP connections that end at the gateways; without the section none do"},
      {"", "dns", section().withDefault("none"), kReload,
       "name servers behind the tunnel, for this host; `braidctl dns set` hands them to "
       "systemd-resolved or resolvconf, and the unit calls it at start and reload"},
      {"", "portal-check", into<Config>("`on`, `any`, `off`", "`on`", readPortalCheck), kReload,
       "looks for a captive portal at an uplink by which no peer is reached. Hosts of the LAN then "
       "reach 192.0.2.1 and 3fff::1 there by TCP, past the tunnel, and while no peer is up its "
       "page: with `on` on that uplink's own link, with `any` anywhere"},
      {"", "forwarding", onOff(BRAID_MEMBER(router.forwarding)), kReload,
       "the host forwards between its interfaces (`net.ipv4.ip_forward`, "
       "`net.ipv6.conf.all.forwarding`) while the daemon runs"},
      {"", "between-peers", onOff(BRAID_MEMBER(tunnel.betweenPeers)), kReload,
       "peers reach each other's `prefixes` (or stations, with a TAP device) through this gateway, "
       "by packets and by streams. `off`: `between_peers` counts what they try"},
      {"", "nat", into<Config>("`on`, `ipv4`, `off`", "`off`", readNat), kReload,
       "what comes from the tunnel and leaves by another interface gets that interface's "
       "address (masquerade); `ipv4`: IPv6 stays as it is; only for a TUN device"},
      {"", "forwards", items(BRAID_MEMBER(router.forwards), kMaxForwards, checkForward), kReload,
       "ports of this host that lead to hosts behind peers; only for a TUN device"},
      {"", "state",
       by(BRAID_MEMBER(state), "complete path",
          "`/var/lib/braid/NAME.state` for a file `NAME.yaml`", readStatePath),
       kRestart,
       "file for the counts of the uplinks' bytes; the peers that get a restart notice and the "
       "invitations are kept beside it"},
      {"", "log", section(), kReload, "the log"},
      {"identity", "key",
       by(BRAID_MEMBER(identity.key), "file", "", readFileName).required(kIdentityRemedy), kRestart,
       "PEM private key, elliptic curve P-256, no passphrase, mode 0600, or a systemd credential"},
      {"identity", "certificate",
       by(BRAID_MEMBER(identity.certificate), "file", "", readFileName).required(kIdentityRemedy),
       kRestart, "PEM certificate of that key; its names and dates do not matter"},
      {"device", "name", by(BRAID_MEMBER(device.name), "interface", "`braid0`", readInterface),
       kRestart, "name of the device"},
      {"device", "mode", oneOf(BRAID_MEMBER(tunnel.mode), kModes), kRestart,
       "IP packets, or Ethernet frames"},
      {"device", "addresses",
       listOf(BRAID_MEMBER(device.addresses), 16, "of `ADDRESS/LENGTH`", readInterfaceAddress,
              Repeats::kMistake),
       kReload, "this gateway's addresses on the device"},
      {"device", "routes",
       listOf(BRAID_MEMBER(device.routes), kMaxNetworks, "networks", readPrefix, Repeats::kMistake),
       kReload,
       "routed into the device, by a routing table of Braid's own that comes before the host's. "
       "Networks of this host's LAN that are as long or longer stay there. In `tun` mode each must "
       "overlap a peer's prefixes; not allowed in `tap` mode"},
      {"device", "when-down", oneOf(BRAID_MEMBER(device.whenDown), kWhenDown).withDefault("none"),
       kReload,
       "what becomes of packets to `routes` while no peer is up. `block`: refused, in both "
       "families if all of one is routed, also while no daemon runs. `direct`: they take the "
       "host's own routes. Without it they are lost, and take those while no daemon runs"},
      {"device", "mark-mask",
       made(BRAID_MEMBER(device.markMask), "eight adjacent bits, such as `0xff0000`", readMarkMask,
            hexadecimal),
       kRestart, "the bits of the packet mark and of the connection mark that are Braid's"},
      {"device", "rule-priority", number(BRAID_MEMBER(device.rulePriority), 1, 32000), kRestart,
       "policy routing rules of Braid have priorities from 100 to 700 above this number"},
      {"device", "bypass-marks",
       listOf(BRAID_MEMBER(device.bypassMarks), kMaxBypassMarks, "of `MARK` or `MARK/MASK`",
              readMark, Repeats::kMistake),
       kReload,
       "packet marks of other tunnels of this host, such as `0xca6c` (wg-quick) or "
       "`0x80000/0xff0000` (Tailscale). What this host itself sends with one of them takes the "
       "routes of the main table, past `routes` and the guard of `when-down`"},
      {"device", "networks",
       listOf(BRAID_MEMBER(device.networks), kMaxNetworks, "networks", readPrefix,
              Repeats::kMistake),
       kReload,
       "on this side: the LANs behind this gateway. `addresses` count as such anyway, in `tun` "
       "mode also the networks at interfaces other than the uplinks. A network that a peer has "
       "among its `prefixes` is a mistake here. Opens special destinations"},
      {"device", "mtu", autoOrNumber(BRAID_MEMBER(device.mtu), kSmallestMtu, kLargestMtu, " bytes"),
       kReload,
       "MTU of the device. `auto`: a TUN device follows the tunnel, not below 1280. With IPv6 "
       "addresses at least 1280. Raising it above 2030, which packet buffers hold, needs a "
       "restart"},
      {"device", "bridge", by(BRAID_MEMBER(device.bridge), "interface", "none", readInterface),
       kRestart, "`tap` only: the existing bridge that the device joins; then no `addresses`"},
      {"device", "ethertypes",
       into<Config>("up to 32 of `ipv4`, `arp`, `ipv6`, `0x0600` to `0xffff`, `any`, `stp`",
                    "`[ipv4, arp, ipv6]`", readEtherTypes),
       kReload, "`tap` only: frames that cross, both ways"},
      {"device", "ageing-time", time(BRAID_MEMBER(tunnel.bridge.macAge), 1s, 24h), kReload,
       "`tap` only: a MAC address belongs to the place of its last frame until it has been "
       "silent there for this time",
       "mac-age"},
      {"device", "flood-limit", number(BRAID_MEMBER(tunnel.bridge.floodLimit), 1, 1'000'000),
       kReload,
       "`tap` only: frames for all that each peer, and the LAN, may send in a second; a quarter "
       "of that at once"},
      {"offloads", "device", onOff(BRAID_MEMBER(offloads.device)), kRestart,
       "up to 64 TCP segments or UDP datagrams of a flow are one read or write of the device "
       "(virtio header, TSO; UDP from Linux 6.2 on)"},
      {"offloads", "sockets", onOff(BRAID_MEMBER(offloads.sockets)), kRestart,
       "up to 64 datagrams of one size to one address are one message to the kernel and from it "
       "(UDP GSO, GRO; Linux 5.0)"},
      {"uplinks", "name",
       by(BRAID_OF(UplinkConfig, name), "name", "the interface; with `mac` or `path` none",
          readName),
       kReload, "for logs and reports"},
      {"uplinks", "interface",
       by(BRAID_OF(UplinkConfig, interface), "name or altname of an interface", "none",
          readLinkName),
       kReload, "each only once; an uplink has one of `interface`, `mac` and `path`"},
      {"uplinks", "mac", by(BRAID_OF(UplinkConfig, mac), "MAC address", "none", readMac), kReload,
       "the interface with this MAC address, whatever its name; not those that run over it "
       "(VLANs, bridges)"},
      {"uplinks", "path", by(BRAID_OF(UplinkConfig, path), "path", "none", readDevicePath), kReload,
       "the interface that is plugged in there, such as `pci-0000:00:14.0-usb-0:2:1.0`: what "
       "`networkctl status` calls its path. Tells equal modems apart, whose names change hands"},
      {"uplinks", "subflows", number(BRAID_OF(UplinkConfig, subflows), 1, 8), kReload,
       "sockets per address family, each with its own source port: more than one where a fabric "
       "hashes flows over paths (ECMP)"},
      {"uplinks", "gateway",
       into<UplinkConfig>("`auto`, `none`, one address or one of each family", "`auto`",
                          readUplinkGateway),
       kReload,
       "`auto`: the interface's own default route, whatever its metric. `none`: the host's main "
       "table as it is. An address: this router, by rules of Braid's own"},
      {"uplinks", "source",
       by(BRAID_OF(UplinkConfig, sources), "one address or one of each family",
          "the interface's best", readAddressPair),
       kReload, "local address to use"},
      {"uplinks", "resolvers",
       listOf(BRAID_OF(UplinkConfig, resolvers), kMaxResolvers, "addresses", readAddress,
              Repeats::kMistake)
           .withDefault("the interface's own"),
       kReload,
       "DNS servers that are asked for the peers' names over this uplink. By default those that "
       "systemd-resolved, systemd-networkd, NetworkManager, resolvconf or a DHCP client has for "
       "the interface, or else the host's"},
      {"uplinks", "use",
       oneOf(BRAID_OF(UplinkConfig, preference.use), kUses)
           .withDefault("`normal`; `metered` with a section `metered`"),
       kReload,
       "`normal`: carries data always. `metered`: while no normal uplink is usable, or those "
       "are full. `backup`: while neither a normal nor a metered one is usable"},
      {"uplinks", "metered", section(BRAID_OF(UplinkConfig, meter), checkMeter), kReload,
       "how many bytes it may carry in a period"},
      {"uplinks", "rate-limit", section().withDefault("none").checkedBy(checkRateLimit), kReload,
       "what may leave by this uplink, and what the peer may send to it"},
      {"uplinks", "weight",
       number(BRAID_OF(UplinkConfig, preference.weight), 1, PathPreference::kMaxWeight), kReload,
       "share of the traffic with `tunnel.scheduler: weighted`"},
      {"uplinks.metered", "cap",
       by(BRAID_OF(UplinkConfig::Meter, cap), "bytes, 10MB to 1000000GB", "", readCap)
           .required("add the bytes that a period allows, such as 10GB"),
       kReload, "bytes that a period allows, both directions together"},
      {"uplinks.metered", "period", oneOf(BRAID_OF(UplinkConfig::Meter, period.unit), kPeriods),
       kReload, "how long a period is"},
      {"uplinks.metered", "reset-day", byCheck("1 to 31, or `monday` to `sunday`", "1, `monday`"),
       kReload, "of the month or week on which a period begins; a shorter month: its last day"},
      {"uplinks.metered", "reset-hour", number(BRAID_OF(UplinkConfig::Meter, period.hour), 0, 23),
       kReload, "local time"},
      {"uplinks.rate-limit", "up",
       rate(BRAID_OF(UplinkConfig, preference.ceiling), PathPreference::kMinCeiling,
            PathPreference::kMaxCeiling)
           .withDefault("none"),
       kReload, "what may leave by the uplink; one of the two must be there"},
      {"uplinks.rate-limit", "down",
       rate(BRAID_OF(UplinkConfig, peerCeiling), PathPreference::kMinCeiling,
            PathPreference::kMaxCeiling)
           .withDefault("none"),
       kReload, "what each peer may send to it"},
      {"peers", "name",
       by(BRAID_OF(PeerConfig, options.name), "name", "", readName)
           .required("give the peer a name for messages and reports"),
       kReload, "for logs and reports"},
      {"peers", "pin",
       by(BRAID_OF(PeerConfig, options.pin), "`sha256:` and 44 base64 characters", "", readPeerPin)
           .required("add the pin that 'braidctl keygen' printed at the peer"),
       kReload, "identity of the peer. A changed pin is another peer: its session ends at reload"},
      {"peers", "endpoints",
       into<PeerConfig>("up to 16 of `ADDRESS:PORT` or `HOST:PORT`", "none", readPeerEndpoints),
       kReload, "where to reach it; without, it must come to `listen`"},
      {"peers", "prefixes",
       listOf(BRAID_OF(PeerConfig, options.prefixes), kMaxNetworks, "networks", readPrefix),
       kReload,
       "addresses behind the peer. `tun`, required: packets to them are sent there (longest "
       "prefix wins), packets from it with other sources are dropped. `tap`: when given, IP and "
       "ARP senders and neighbour advertisements must be inside"},
      {"peers", "keepalive",
       by(BRAID_OF(PeerConfig, options.keepalive), "time, 0 or 100ms to 60s", "`10s`",
          readKeepalive),
       kReload,
       "pause after which an idle subflow sends a PING; 0: never. Keeps NAT mappings, and "
       "notices paths that are dead, or dead one way. A session in which nothing is heard for "
       "180 s is forgotten at both ends"},
      {"peers", "psk", by(BRAID_OF(PeerConfig, psk), "file", "none", readPskName), kReload,
       "pre-shared key: base64 of 32 random bytes that the peer has, too; mode 0600, or a systemd "
       "credential. Mixed into all keys; with it on one side only, or another one there, no "
       "session "
       "comes up. A changed one ends the session"},
      {"peers", "group", by(BRAID_OF(PeerConfig, options.group), "name", "none", readName), kReload,
       "peers of one group (up to 8) stand for each other where they have the same prefix; one "
       "that shares none with the others is a mistake. TUN only"},
      {"control", "socket",
       by(BRAID_MEMBER(control.socket), "complete path of up to 107 bytes",
          "`/run/braid/NAME.sock` for a file `NAME.yaml`", readSocketPath),
       kRestart, "the folder must exist; a lock lies beside it"},
      {"control", "group", by(BRAID_MEMBER(control.group), "name", "the process's group", readName),
       kRestart, "group of the socket (mode 0660)"},
      {"log", "level", choice(BRAID_MEMBER(logLevel), kLogLevels), kReload,
       "log is written to stderr, in the journal's format when stderr is the journal"},
      {"dns", "servers",
       listOf(BRAID_MEMBER(dns.servers), kMaxResolvers, "addresses", readAddress, Repeats::kMistake)
           .required("name the servers, such as 10.2.0.53"),
       kReload, "their addresses; never asked for the peers' own names"},
      {"dns", "domains",
       listOf(BRAID_MEMBER(dns.domains), 32, "domains", readDomain).withDefault("all names"),
       kReload,
       "the only names that they are asked for, with all below these; needs systemd-resolved"},
      {"forwards", "protocol",
       oneOf(BRAID_OF(PortForward, protocol), kForwardProtocols).withDefault("`tcp`"), kReload,
       "of the port"},
      {"forwards", "port",
       ports<PortForward>("`8080` or `5000-5010`")
           .required("name the port of this gateway, such as 8080 or 5000-5010"),
       kReload,
       "of every address of this host; for what comes from the tunnel, except for those of the "
       "device"},
      {"forwards", "to",
       into<PortForward>("`ADDRESS`, `ADDRESS:PORT`, `[ADDRESS]:PORT`", "", readForwardTarget)
           .required("name the host behind a peer, such as 192.168.1.10 or 192.168.1.10:80"),
       kReload,
       "host behind a peer; its family is the family that is forwarded. Without a port the one "
       "that was asked for"},
      {"forwards", "from",
       listOf(BRAID_OF(PortForward, from), 64, "networks", readPrefix).withDefault("all"), kReload,
       "sources that may use it"},
      {"forwards", "source", oneOf(BRAID_OF(PortForward, ownSource), kForwardSources), kReload,
       "what the host sees: the client, or this gateway's address on the device. With `client` "
       "the edge must take any source from here (`0.0.0.0/0` among this peer's `prefixes` "
       "there) and send the answers back into the tunnel; with `own` it need not"},
  };
}

}  // namespace braid::setting
