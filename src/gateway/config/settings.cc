#include "gateway/config/settings.h"

#include <tuple>

#include "coding/symbols.h"
#include "gateway/config/config_checks.h"
#include "gateway/config/config_values.h"
#include "gateway/config/setting_values.h"
#include "inet/ip.h"
#include "scheduler/path/path_scheduler.h"
#include "scheduler/rate/controller.h"

/// A member of a section's target; BRAID_MEMBER: of the Config.
#define BRAID_OF(type, member) setting::of<type>([](auto& item) -> auto& { return item.member; })
#define BRAID_MEMBER(member) BRAID_OF(Config, member)

namespace braid {
namespace {

constexpr SettingChange kReload = SettingChange::kReload, kRestart = SettingChange::kRestart;

constexpr uint64_t kSmallestMtu = 576;  // RFC 791: every IPv4 host accepts packets of this size
constexpr uint64_t kLargestMtu = 9216;  // jumbo frames
// Handshakes and path challenges fill MtuDiscovery::kMinDatagram bytes of UDP payload on every
// path. The headers of UDP and IPv6 are added, because any endpoint may have an IPv6 address.
constexpr uint64_t kSmallestOuterMtu = 1248;
constexpr uint64_t kLargestOuterMtu = 9216;  // jumbo frames
constexpr uint64_t kMostParities = std::tuple_size_v<decltype(RecoveryOptions::decodeTime)>;
static_assert(kMostParities <= kMaxBlockParities);

constexpr std::string_view kLogLevels[] = {"trace", "debug", "info", "warning", "error"};
constexpr setting::Named<TunnelOptions::Mode> kModes[] = {{"tun", TunnelOptions::Mode::kTun},
                                                          {"tap", TunnelOptions::Mode::kTap}};
constexpr setting::Named<std::optional<AeadKind>> kCiphers[] = {
    {"auto", std::nullopt},
    {"aes-128-gcm", AeadKind::kAes128Gcm},
    {"aes-256-gcm", AeadKind::kAes256Gcm},
    {"chacha20-poly1305", AeadKind::kChaCha20Poly1305}};
constexpr setting::Named<StreamsConfig::Source> kStreamSources[] = {
    {"client", StreamsConfig::Source::kClient}, {"own", StreamsConfig::Source::kOwn}};
constexpr setting::Named<PathUse> kUses[] = {
    {"normal", PathUse::kNormal}, {"metered", PathUse::kMetered}, {"backup", PathUse::kBackup}};
constexpr setting::Named<MeterPeriod::Unit> kPeriods[] = {{"day", MeterPeriod::Unit::kDay},
                                                          {"week", MeterPeriod::Unit::kWeek},
                                                          {"month", MeterPeriod::Unit::kMonth}};
constexpr setting::Named<uint8_t> kForwardProtocols[] = {{"tcp", ip::kTcp}, {"udp", ip::kUdp}};
constexpr setting::Named<bool> kForwardSources[] = {{"client", false}, {"own", true}};
constexpr setting::Named<std::optional<Delivery>> kDeliveries[] = {
    {deliveryName(Delivery::kOrdered), Delivery::kOrdered},
    {deliveryName(Delivery::kTimely), Delivery::kTimely}};

constexpr size_t kMaxNetworks = 1024;
/// There are limits because each new flow is compared with all rules, and each new connection with
/// all forwards.
constexpr size_t kMaxRules = 64;
constexpr size_t kMaxForwards = 256;

std::vector<Setting> makeSettings() {
  using namespace setting;
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
      {"", "peers", byCheck("list of up to 1024", "required"), kReload,
       "the gateways at the other end; a gateway that listens may have none"},
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
      {"", "forwarding", onOff(BRAID_MEMBER(router.forwarding)), kReload,
       "the host forwards between its interfaces (`net.ipv4.ip_forward`, "
       "`net.ipv6.conf.all.forwarding`) while the daemon runs"},
      {"", "nat", into<Config>("`on`, `ipv4`, `off`", "`off`", readNat), kReload,
       "what comes from the tunnel and leaves by another interface gets that interface's "
       "address (masquerade); `ipv4`: IPv6 stays as it is; only for a TUN device"},
      {"", "forwards", items(BRAID_MEMBER(router.forwards), kMaxForwards, checkForward), kReload,
       "ports of this host that lead to hosts behind peers; only for a TUN device"},
      {"", "state",
       by(BRAID_MEMBER(state), "complete path",
          "`/var/lib/braid/NAME.state` for a file `NAME.yaml`", readStatePath),
       kRestart,
       "file for the counts of metered uplinks; the peers that get a restart notice and the "
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
       "routed into the device, in the main table, before the host's own routes to the same "
       "networks. In `tun` mode each must overlap a peer's prefixes; not allowed in `tap` mode"},
      {"device", "networks",
       listOf(BRAID_MEMBER(device.networks), kMaxNetworks, "networks", readPrefix,
              Repeats::kMistake),
       kReload,
       "on this side: the LANs behind this gateway. `addresses` count as such anyway. A network "
       "that a peer has among its `prefixes` is a mistake here. Opens special destinations"},
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
      {"uplinks", "name", by(BRAID_OF(UplinkConfig, name), "name", "the interface", readName),
       kReload, "for logs and reports"},
      {"uplinks", "interface",
       by(BRAID_OF(UplinkConfig, interface), "interface", "", readInterface)
           .required("name the interface, such as wlan0; 'ip link' lists them"),
       kReload, "each only once"},
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
      {"tunnel", "controller", choice(BRAID_MEMBER(tunnel.controller), kControllerNames), kReload,
       "rate control of a subflow; a change holds for subflows made afterwards. `auto` is "
       "`wan`, and `amp` within a data centre whose switches mark (ECN)"},
      {"tunnel", "amp", section(), kReload,
       "parameters of `amp`, which `auto` may choose as well; a mistake with another controller"},
      {"tunnel", "initial-window", number(BRAID_MEMBER(tunnel.initialWindow), 2, 1000, " packets"),
       kReload,
       "window of a new subflow, or one that comes back; 2 on a fabric with shallow switches"},
      {"tunnel", "scheduler", choice(BRAID_MEMBER(tunnel.scheduler), kPathSchedulerNames), kReload,
       "which path new data takes"},
      {"tunnel", "cipher", oneOf(BRAID_MEMBER(cipher), kCiphers), kRestart,
       "`auto`: AES where both processors have it, else ChaCha20. Another value is the only one "
       "offered and accepted"},
      {"tunnel", "mtu",
       autoOrNumber(BRAID_MEMBER(tunnel.outerMtu), kSmallestOuterMtu, kLargestOuterMtu, " bytes"),
       kRestart,
       "size of IP packets on the uplinks; a number is not probed. Paths must carry 1228 bytes "
       "(IPv4) or 1248 (IPv6) for handshakes and path challenges"},
      {"tunnel", "max-mtu",
       number(BRAID_MEMBER(tunnel.maxOuterMtu), kSmallestOuterMtu, kLargestOuterMtu, " bytes"),
       kRestart, "upper end of the probing"},
      {"tunnel", "rekey-after", offOrTime(BRAID_MEMBER(tunnel.rekeyAfter), 10s, 24h * 7), kReload,
       "after this time, or up to a quarter of it earlier, the side that began the session "
       "makes a fresh handshake for new keys beside it. When that fails, the session continues "
       "and it is tried again (`key_age_s`, `failed_rekeys`)"},
      {"tunnel", "rekey-packets", number(BRAID_MEMBER(tunnel.rekeyPackets), 1 << 10, 1 << 23),
       kReload, "new keys, without a handshake, after this number of datagrams"},
      {"tunnel", "codel-target", autoOrTime(BRAID_MEMBER(tunnel.codelTarget), 100us, 1s), kReload,
       "standing delay of a flow's queue above which its packets are marked or dropped. `auto`: "
       "1.5 times the RTT of the slowest path in use, from 25 ms to half the interval"},
      {"tunnel", "codel-interval", time(BRAID_MEMBER(tunnel.codelInterval), 1ms, 10s), kReload,
       "how long the delay must stand before the first packet is dropped; at least twice the "
       "RTT of the slowest path in use, plus the target"},
      {"tunnel", "queue-limit", bytes(BRAID_MEMBER(tunnel.queueBytes), 64 << 10, 1 << 30), kReload,
       "all flow queues towards one peer; a packet counts as the buffer that it takes. With a "
       "buffer for each of `max-flows` at least, a packet that is alone in its flow is never "
       "dropped here"},
      {"tunnel", "reorder-timeout", time(BRAID_MEMBER(tunnel.holdTime), 0s, 10s), kReload,
       "longest wait of a TCP packet for a missing one before it", "hold-time"},
      {"tunnel", "reorder-limit", bytes(BRAID_MEMBER(tunnel.holdBytes), 64 << 10, 1 << 30), kReload,
       "all packets from one peer that wait in this way, counted as for `queue-limit`",
       "hold-limit"},
      {"tunnel", "delivery-timeout", time(BRAID_MEMBER(tunnel.repairTime), 100ms, 60s), kReload,
       "a lost TCP packet is resent for at most this time; a peer without a usable path for "
       "this time is down",
       "repair-time"},
      {"tunnel", "max-flows", number(BRAID_MEMBER(tunnel.maxFlows), 16, 1 << 20), kRestart,
       "inner flows towards one peer at once; above 16384 counts as 16384. One inner host, as "
       "source or destination, gets at most eight ninths of them"},
      {"tunnel", "flow-idle-timeout", time(BRAID_MEMBER(tunnel.flowIdle), 1s, 24h), kReload,
       "a flow without packets is forgotten", "flow-idle"},
      {"tunnel", "max-subflows", number(BRAID_MEMBER(tunnel.maxSubflows), 1, 256), kReload,
       "per peer; the side that listens refuses more"},
      {"tunnel", "ecn-proxy", onOff(BRAID_MEMBER(tunnel.ecnProxy)), kReload,
       "speak ECN for local hosts that do not, so that the far gateway marks the TCP packets "
       "sent to them instead of dropping them; changes the ECN bits of SYNs and ACKs"},
      {"tunnel", "ack-shim", section(), kReload,
       "repairs what is lost between this gateway and TCP hosts"},
      {"tunnel", "failback-delay", time(BRAID_MEMBER(tunnel.returnAfter), 1s, 24h), kReload,
       "a preferred peer of a group that failed is used again when it has been well for this "
       "time",
       "return-after"},
      {"tunnel.amp", "gamma", number(BRAID_MEMBER(tunnel.amp.gamma), 1, 1000, " rounds"), kReload,
       "after this number of rounds with all subflows at the least window, all but the first "
       "are suppressed. A round is a window of the first"},
      {"tunnel.amp", "tau", number(BRAID_MEMBER(tunnel.amp.tau), 1, 1000, " rounds"), kReload,
       "after this number of rounds without marks on the first, all are used again"},
      {"tunnel.amp", "beta", number(BRAID_MEMBER(tunnel.amp.beta), 2, 1000), kReload,
       "a mark takes 1/beta of the window, once per window"},
      {"tunnel.amp", "cwnd-min", number(BRAID_MEMBER(tunnel.amp.minimumWindow), 1, 100, " packets"),
       kReload, "least window of a subflow, at most `initial-window`"},
      {"tunnel.amp", "bdp", into<Config>("1 to 1048576 packets", "none", readAmpPackets), kReload,
       "instead of `beta`: it becomes (bdp + mark-threshold) / mark-threshold, at least 2, so "
       "that a cut does not empty the queue"},
      {"tunnel.amp", "mark-threshold", into<Config>("1 to 1048576 packets", "none", readAmpPackets),
       kReload,
       "instead of `beta`: it becomes (bdp + mark-threshold) / mark-threshold, at least 2, so "
       "that a cut does not empty the queue"},
      {"tunnel.ack-shim", "enabled", onOff(BRAID_MEMBER(tunnel.ackShim)), kReload,
       "when it is switched off, it forgets flows and counters"},
      {"tunnel.ack-shim", "alpha", number(BRAID_MEMBER(tunnel.shim.alpha), 1, 1000), kReload,
       "round trips without an ACK before a sender is told, when nothing else is known, or its "
       "SYN is sent again"},
      {"tunnel.ack-shim", "phi", number(BRAID_MEMBER(tunnel.shim.phi), 1, 16), kReload,
       "duplicate ACKs that make the senders retransmit"},
      {"tunnel.ack-shim", "gamma", bytes(BRAID_MEMBER(tunnel.shim.gamma), 1000, 1 << 30), kReload,
       "a burst (an answer, a message) of which more is acknowledged is large and left alone; "
       "TCP has means of its own there"},
      {"tunnel.ack-shim", "rto-min", time(BRAID_MEMBER(tunnel.shim.rtoMin), 10ms, 60s), kReload,
       "the senders' least timeout; near it nothing is said"},
      {"tunnel.ack-shim", "inactivity", time(BRAID_MEMBER(tunnel.shim.inactivity), 10ms, 60s),
       kReload,
       "after this time without data a new burst begins, even if something is outstanding"},
      {"tunnel.ack-shim", "max-flows", number(BRAID_MEMBER(tunnel.shim.maxFlows), 16, 1 << 20),
       kRestart, "connections watched, 256 bytes each; others pass as they are"},
      {"tunnel.ack-shim", "replay", onOff(BRAID_MEMBER(tunnel.shim.replay)), kReload,
       "keep the last segments of short transfers and send them again to the host"},
      {"tunnel.ack-shim", "sack-gap", onOff(BRAID_MEMBER(tunnel.shim.sackGap)), kReload,
       "for old stacks: a SACK block 40 bytes above the ACK when nothing better is known"},
      {"tunnel.ack-shim", "exclude",
       items(BRAID_MEMBER(tunnel.shim.rules), kMaxRules, checkShimExclusion), kReload,
       "flows left alone: `network` (source or destination) and `ports` (source or "
       "destination), one of them at least; both must match. Holds for new connections"},
      {"tunnel.ack-shim.exclude", "network",
       by(BRAID_OF(ShimRule, prefix), "network", "none", readPrefix), kReload,
       "source or destination; both keys must match where both are given"},
      {"tunnel.ack-shim.exclude", "ports", ports<ShimRule>("`5060` or `5060-5080`"), kReload,
       "source or destination"},
      {"streams", "enabled", onOff(BRAID_MEMBER(tunnel.streams.on)).withDefault("`on`"), kRestart,
       "whether connections are taken over"},
      {"streams", "match",
       items(BRAID_MEMBER(streams.match), kMaxRules, checkStreamMatch)
           .withDefault("TCP ports 80, 443, 8080, 8443")
           .checkedBy(checkStreamMatches),
       kReload,
       "connections taken over: `network` and `ports` of the destination, one of them at least; "
       "both must match. Holds for new connections, of the hosts at this side"},
      {"streams", "exclude", items(BRAID_MEMBER(streams.exclude), kMaxRules, checkStreamExclusion),
       kReload, "connections left alone, written in the same way"},
      {"streams", "source", oneOf(BRAID_MEMBER(streams.source), kStreamSources), kReload,
       "what servers at this side see: the client's address and port, or the gateway's address. "
       "`own` where the servers' answers to the clients would not come back through this gateway"},
      {"streams", "max-connections", number(BRAID_MEMBER(streams.most), 1, 1 << 20), kReload,
       "TCP connections at this gateway, both directions"},
      {"streams", "max-streams-per-peer", number(BRAID_MEMBER(tunnel.streams.most), 1, 1 << 18),
       kReload, "streams with a peer, of both directions; no more than `max-connections`",
       "max-per-peer"},
      {"streams", "new-streams-per-peer",
       number(BRAID_MEMBER(tunnel.streams.newPerSecond), 1, 100'000), kReload,
       "streams a second that the peer may open in the long run, and four times as many at once",
       "new-per-peer"},
      {"streams", "receive-window",
       bytes(BRAID_MEMBER(tunnel.streams.mostCredit), 64 << 10, StreamOptions::kCreditBound),
       kReload, "what is held of one stream for a reader that is slow", "hold-limit"},
      {"streams", "peer-receive-limit",
       bytes(BRAID_MEMBER(tunnel.streams.heldBytes), 1 << 20, uint64_t{1} << 34), kReload,
       "of all streams of a peer: whole buffers of what waits for a reader or for bytes before "
       "it, and what keeps them in order",
       "peer-hold-limit"},
      {"streams", "total-receive-limit",
       bytes(BRAID_MEMBER(tunnel.streams.allHeldBytes), 1 << 20, uint64_t{1} << 36), kRestart,
       "of all peers, and no more than the shared packet buffers give (35 MB)", "total-hold-limit"},
      {"streams.match", "network", by(BRAID_OF(StreamRule, network), "network", "none", readPrefix),
       kReload, "the connection's destination; both keys must match where both are given"},
      {"streams.match", "ports", ports<StreamRule>("`8000` or `8000-8099`"), kReload,
       "of the destination"},
      {"streams.exclude", "network",
       by(BRAID_OF(StreamRule, network), "network", "none", readPrefix), kReload,
       "the connection's destination; both keys must match where both are given"},
      {"streams.exclude", "ports", ports<StreamRule>("`8000` or `8000-8099`"), kReload,
       "of the destination"},
      {"forwards", "protocol",
       oneOf(BRAID_OF(PortForward, protocol), kForwardProtocols).withDefault("`tcp`"), kReload,
       "of the port"},
      {"forwards", "port",
       ports<PortForward>("`8080` or `5000-5010`")
           .required("name the port of this gateway, such as 8080 or 5000-5010"),
       kReload, "of every address of this host, except for what comes from the tunnel"},
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
      {"recovery", "policy", choice(BRAID_MEMBER(tunnel.recovery), kRecoveryPolicies), kReload,
       "policy of the flows that no class matches"},
      {"recovery", "k-max", number(BRAID_MEMBER(tunnel.recoveryOptions.kMax), 1, kMaxBlockSymbols),
       kReload, "most packets of a block"},
      {"recovery", "m-max", number(BRAID_MEMBER(tunnel.recoveryOptions.mMax), 1, kMostParities),
       kReload,
       "most parities of a block of `cofuso` (the paper found 3 to do best); `adaptive` takes "
       "what its estimate asks for, up to 16"},
      {"recovery", "alpha", fraction(BRAID_MEMBER(tunnel.recoveryOptions.alpha)), kReload,
       "weights of overall and latest loss rate in the metric C_l that ranks paths (`fuso`)"},
      {"recovery", "beta", fraction(BRAID_MEMBER(tunnel.recoveryOptions.beta)), kReload,
       "weights of overall and latest loss rate in the metric C_l that ranks paths (`fuso`)"},
      {"recovery", "alpha1", fraction(BRAID_MEMBER(tunnel.recoveryOptions.alpha1)), kReload,
       "weights of overall and latest loss rate in the loss estimate L that decides K and M "
       "(`cofuso`)"},
      {"recovery", "beta1", fraction(BRAID_MEMBER(tunnel.recoveryOptions.beta1)), kReload,
       "weights of overall and latest loss rate in the loss estimate L that decides K and M "
       "(`cofuso`)"},
      {"recovery", "alpha2", fraction(BRAID_MEMBER(tunnel.recoveryOptions.alpha2)), kReload,
       "weights of loss and RTT in the ranking of paths (`cofuso`)"},
      {"recovery", "beta2", fraction(BRAID_MEMBER(tunnel.recoveryOptions.beta2)), kReload,
       "weights of loss and RTT in the ranking of paths (`cofuso`)"},
      {"recovery", "decode-buffer", number(BRAID_MEMBER(tunnel.decodeBuffer), 0, 65536, " packets"),
       kRestart,
       "packets of each subflow that this gateway keeps at most to decode what the peer sends, "
       "128 until it sends parities; 0: keeps none and decodes nothing. Up to 2 KB each"},
      {"recovery", "classes",
       items(BRAID_MEMBER(tunnel.recoveryClasses), kMaxRecoveryClasses, checkRecoveryClass)
           .checkedBy(checkRecoveryClasses),
       kReload, "flows with a policy of their own; the first that matches holds"},
      {"recovery", "trace", by(BRAID_MEMBER(trace), "complete path", "none", readTracePath),
       kReload, "file of the recovery trace"},
      {"recovery.classes", "protocol",
       by(BRAID_OF(RecoveryClass, protocol), "`tcp`, `udp`, 0 to 255", "none", readProtocol),
       kReload, "IP protocol"},
      {"recovery.classes", "ports", ports<RecoveryClass>("`5060` or `5060-5080`"), kReload,
       "source or destination port"},
      {"recovery.classes", "dscp",
       by(BRAID_OF(RecoveryClass, dscp),
          "0 to 63, `cs0` to `cs7`, `af11` to `af43`, `ef`, `voice-admit`, `le`", "none", readDscp),
       kReload, "of the flow's first packet"},
      {"recovery.classes", "policy",
       by(BRAID_OF(RecoveryClass, policy), "as `recovery.policy`", "that of `recovery.policy`",
          readPolicy),
       kReload, "as `recovery.policy`; required without `delivery`"},
      {"recovery.classes", "delivery",
       oneOf(BRAID_OF(RecoveryClass, delivery), kDeliveries).withDefault("none"), kReload,
       "of datagrams: kept in order and repaired, or delivered at once; without it they are "
       "what they look like. TCP is always kept in order"},
  };
}

}  // namespace

SettingValue SettingValue::withDefault(std::string text) && {
  fallback = std::move(text);
  return std::move(*this);
}

SettingValue SettingValue::required(std::string remedy) && {
  fallback = "required";
  missing = std::move(remedy);
  return std::move(*this);
}

std::string Setting::path() const {
  return (section.empty() ? "" : std::string(section) + ".") + std::string(key);
}

std::span<const Setting> settings() {
  static const std::vector<Setting> kSettings = makeSettings();
  return kSettings;
}

std::vector<std::string_view> keysOf(std::string_view section) {
  std::vector<std::string_view> keys;
  for (const Setting& each : settings())
    if (each.section == section) keys.push_back(each.key);
  return keys;
}

std::string_view goneFor(std::string_view section, std::string_view key) {
  if (section.empty() && key == "workers") {
    return "remove it; more cores are for shards: several daemons, each with a part of the peers "
           "(docs/guide.md)";
  }
  return {};
}

std::string_view renamedTo(std::string_view section, std::string_view key) {
  for (const Setting& each : settings())
    if (each.section == section && !key.empty() && each.former == key) return each.key;
  return {};
}

void readSettings(const ConfigSection& section, const SettingTarget& target,
                  ConfigDiagnostics& out) {
  std::string path = sectionOf(section.self());
  for (const Setting& each : settings()) {
    if (each.section != path || !each.value.read) continue;
    const std::string& missing = each.value.missing;
    each.value.read(missing.empty() ? section.find(each.key) : section.require(each.key, missing),
                    target, out);
  }
}

void readSection(const ConfigValue& value, const SettingTarget& target, ConfigDiagnostics& out) {
  if (value) readSettings(ConfigSection(value, out), target, out);
}

}  // namespace braid

#undef BRAID_MEMBER
#undef BRAID_OF
