// The table of settings: the sections about traffic, `tunnel`, `streams` and `recovery`.

#include <tuple>

#include "coding/symbols.h"
#include "gateway/config/config_checks.h"
#include "gateway/config/config_values.h"
#include "gateway/config/setting_values.h"
#include "scheduler/path/path_scheduler.h"
#include "scheduler/rate/controller.h"

namespace braid::setting {
namespace {

// Handshakes and path challenges fill MtuDiscovery::kMinDatagram bytes of UDP payload on every
// path. The headers of UDP and IPv6 are added, because any endpoint may have an IPv6 address.
constexpr uint64_t kSmallestOuterMtu = 1248;
constexpr uint64_t kLargestOuterMtu = 9216;  // jumbo frames
constexpr uint64_t kMostParities = std::tuple_size_v<decltype(RecoveryOptions::decodeTime)>;
static_assert(kMostParities <= kMaxBlockParities);

constexpr Named<std::optional<AeadKind>> kCiphers[] = {
    {"auto", std::nullopt},
    {"aes-128-gcm", AeadKind::kAes128Gcm},
    {"aes-256-gcm", AeadKind::kAes256Gcm},
    {"chacha20-poly1305", AeadKind::kChaCha20Poly1305}};
constexpr Named<StreamsConfig::Source> kStreamSources[] = {
    {"client", StreamsConfig::Source::kClient}, {"own", StreamsConfig::Source::kOwn}};
constexpr Named<StreamsConfig::Connect> kStreamConnects[] = {
    {"early", StreamsConfig::Connect::kEarly}, {"first", StreamsConfig::Connect::kFirst}};
constexpr Named<std::optional<Delivery>> kDeliveries[] = {
    {deliveryName(Delivery::kOrdered), Delivery::kOrdered},
    {deliveryName(Delivery::kTimely), Delivery::kTimely}};

/// There is a limit because each new flow is compared with all rules.
constexpr size_t kMaxRules = 64;

}  // namespace

std::vector<Setting> trafficSettings() {
  return {
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
      {"tunnel", "rekey-after", time(BRAID_MEMBER(tunnel.rekeyAfter), 10s, 24h * 7, "off"), kReload,
       "after this time, or up to a quarter of it earlier, the side that began the session "
       "makes a fresh handshake for new keys beside it. When that fails, the session continues "
       "and it is tried again (`key_age_s`, `failed_rekeys`)"},
      {"tunnel", "rekey-packets", number(BRAID_MEMBER(tunnel.rekeyPackets), 1 << 10, 1 << 23),
       kReload, "new keys, without a handshake, after this number of datagrams"},
      {"tunnel", "codel-target", time(BRAID_MEMBER(tunnel.codelTarget), 100us, 1s, "auto"), kReload,
       "standing delay of a flow's queue above which its packets are marked or dropped. `auto`: "
       "1.5 times the RTT of the slowest path in use, from 25 ms to half the interval"},
      {"tunnel", "codel-interval", time(BRAID_MEMBER(tunnel.codelInterval), 1ms, 10s), kReload,
       "how long the delay must stand before the first packet is dropped; at least twice the "
       "RTT of the slowest path in use, plus the target"},
      {"tunnel", "queue-limit", bytes(BRAID_MEMBER(tunnel.queueBytes), 64 << 10, 1 << 30), kReload,
       "all flow queues towards one peer; a packet counts as the buffer that it takes. With a "
       "buffer for each of `max-flows` at least, a packet that is alone in its flow is never "
       "dropped here"},
      {"tunnel", "reorder-timeout", time(BRAID_MEMBER(tunnel.holdTime), 1ms, 10s, "auto"), kReload,
       "longest wait of a TCP packet for a missing one before it. `auto`: 500 ms, or longer if a "
       "loss and its repair take longer on the slowest path in use",
       "hold-time"},
      {"tunnel", "reorder-limit", bytes(BRAID_MEMBER(tunnel.holdBytes), 64 << 10, 1 << 30), kReload,
       "all packets from one peer that wait in this way, counted as for `queue-limit`",
       "hold-limit"},
      {"tunnel", "delivery-timeout", time(BRAID_MEMBER(tunnel.repairTime), 100ms, 60s), kReload,
       "a lost TCP packet is resent for at most this time, or for what a loss and its repair take "
       "on the slowest path in use; a peer without a usable path for this time is down",
       "repair-time"},
      {"tunnel", "max-flows", number(BRAID_MEMBER(tunnel.maxFlows), 16, 1 << 20), kRestart,
       "inner flows towards one peer at once; above 16384 counts as 16384. One inner host, as "
       "source or destination, gets at most eight ninths of them"},
      {"tunnel", "flow-idle-timeout", time(BRAID_MEMBER(tunnel.flowIdle), 1s, 24h), kReload,
       "a flow without packets is forgotten", "flow-idle"},
      {"tunnel", "max-subflows", number(BRAID_MEMBER(tunnel.maxSubflows), 1, 256), kReload,
       "per peer; the side that listens refuses more"},
      {"tunnel", "tell-names", onOff(BRAID_MEMBER(tunnel.tellNames)), kReload,
       "tell the peers the names of the uplinks, which their status, events and metrics show; a "
       "change holds for subflows made afterwards. With `off` a peer shows addresses and ports"},
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
      {"streams", "from",
       listOf(BRAID_MEMBER(streams.from), kMaxNetworks, "networks", readPrefix, Repeats::kMistake)
           .withDefault("`device.networks`; all without"),
       kReload,
       "networks at this side whose hosts' connections may be taken over. Name none that the peer "
       "does not have among this gateway's `prefixes`: it refuses streams of such hosts"},
      {"streams", "accept",
       items(BRAID_MEMBER(streams.accept), kMaxRules, checkStreamAcceptance)
           .withDefault("what the host forwards packets to"),
       kReload,
       "destinations at this side that peers' streams may reach: `network` and `ports`, one of "
       "them "
       "at least; both must match. By default all while the host forwards packets of the family, "
       "and none while it does not"},
      {"streams", "connect", oneOf(BRAID_MEMBER(streams.connect), kStreamConnects), kReload,
       "when a connection of a host at this side is accepted: at once (`early`), or when its "
       "destination has accepted (`first`). With `first` clients see that a port is closed; each "
       "waits a round trip of the tunnel. Peers that cannot tell: as with `early`"},
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
      {"streams.accept", "network",
       by(BRAID_OF(StreamRule, network), "network", "none", readPrefix), kReload,
       "the connection's destination; both keys must match where both are given"},
      {"streams.accept", "ports", ports<StreamRule>("`8000` or `8000-8099`"), kReload,
       "of the destination"},
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

}  // namespace braid::setting
