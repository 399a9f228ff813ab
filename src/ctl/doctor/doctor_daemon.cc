#include <algorithm>
#include <string>
#include <string_view>

#include "ctl/doctor/doctor.h"
#include "ctl/views/format.h"
#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "gateway/uplinks/portal_watch.h"
#include "tunnel/api/status.h"

namespace braid {
namespace {

using Json = nlohmann::json;

// Packets, lately. Fewer, as of a host that tries its other address, are not a finding.
constexpr uint64_t kManyForeign = 20;
constexpr double kSearched = 10;  // s after which the size of a path is known
constexpr double kNarrowPath =
    1343;  // bytes: paths that carry less get small packets only (mtu_discovery.h)
// The least RTT of 10 s. Chosen: a hop by a geostationary satellite takes some 600 ms.
constexpr double kSlowMs = 1500;
// Streams that were forbidden lately. Each pair of hosts begins with one, and is left to packets
// then.
constexpr uint64_t kManyForbidden = 3;
// Packets between peers that were dropped lately.
constexpr uint64_t kManyBetween = 10;
constexpr double kOrdinaryPath = 1400;  // bytes: an interface with an ordinary MTU carries as much

// How much one of RefusedCounts has grown in the last ten minutes, or since the configuration came
// into effect, so that doctor does not report what was mended. Of an older daemon: since its start.
uint64_t lately(const Json& now, const Json& history, const char* key) {
  uint64_t total = countOf(now, key), before = countOf(fieldOf(history, "formerly"), key);
  return total > before ? total - before : 0;
}

struct Remedy {
  std::string_view words;  ///< the error of a handshake contains these words
  const char* text;
};
constexpr Remedy kRemedies[] = {
    {"no answer",
     "there: is braidd running, is this UDP port let in (braidctl doctor there), is the endpoint "
     "here right? "
     "'pin' here "
     "must be what 'braidctl pin FILE.crt' prints there: to who has a wrong one a gateway is "
     "silent"},
    {"not finished in time",
     "large datagrams are lost on the way: let UDP datagrams of 1200 bytes pass all firewalls, "
     "raise the MTU "
     "of the "
     "path to 1280 or more, or see to the line"},
    {"does not accept us", "at the peer, put this gateway's pin into its 'pin' for us, and reload"},
    {"pre-shared key",
     "put the same key into the files of 'psk' at both gateways, or take 'psk' away at both, and "
     "reload"},
    {"stranger", "to let it in, add a peer with this pin and reload; else leave it"},
    {"cipher", "set tunnel.cipher alike at both gateways, or to auto"},
    {"version", "bring both gateways to releases that are next to each other"},
    {"P-256", "make the key anew with 'braidctl keygen', and give its pin to the peers"},
};

std::string remedyFor(const std::string& text) {
  for (const Remedy& r : kRemedies)
    if (text.find(r.words) != std::string::npos) return r.text;
  return "docs/operations.md, \"When something is wrong\"; the daemon's log has more";
}

// The last failed handshake with the peer; null: none.
Json lastFailure(const Json& history, const std::string& peer) {
  Json last;
  for (const Json& e : listOf(history, "events")) {
    if (textOf(e, kKeyOf<&PastEvent::kind>) != "handshake_failed" ||
        textOf(e, kKeyOf<&PastEvent::peer>) != peer)
      continue;
    if (last.is_null() ||
        numberOf(e, kKeyOf<&PastEvent::last>) >= numberOf(last, kKeyOf<&PastEvent::last>))
      last = e;
  }
  return last;
}

void judgeCaller(const Json& status, const Json& history, const std::string& name,
                 DoctorReport& report) {
  Json drops = fieldOf(status, kKeyOf<&TunnelStatus::drops>);
  Json traffic = fieldOf(status, "host_traffic");
  std::string at = "this gateway";
  for (const Json& listen : listOf(fieldOf(status, "gateway"), kKeyOf<&GatewayStatus::listen>))
    if (listen.is_string()) at = listen.get<std::string>();
  if (countOf(traffic, kKeyOf<&SocketTraffic::receivedDatagrams>) == 0) {
    return report.wrong(
        {"peer", "no peer has come, and no datagram at all has arrived at " + at,
         "a firewall or a missing port forwarding before this host, or nobody calls",
         "let the UDP port in at every firewall on the way (the provider's included), forward it "
         "in a "
         "NAT router, and check the endpoint at the peers"});
  }
  if (uint64_t n = lately(drops, history, kKeyOf<&RefusedCounts::wrongPin>)) {
    return report.wrong({"peer",
                         name + " has not come; " + std::to_string(n) +
                             " handshakes were for a gateway with "
                             "another pin (handshake_decrypt_failed)",
                         "to who has a wrong pin of this gateway it is silent",
                         "at the peer, put this gateway's pin: " +
                             textOf(fieldOf(status, "gateway"), kKeyOf<&GatewayStatus::pin>)});
  }
  report.wrong({"peer", name + " has not come, and no other peer is up", "nothing can be carried",
                "run 'braidctl doctor' at the peer"});
}

void judgePeer(const Patient& patient, const Json& status, const Json& history, const Json& peer,
               bool anyUp, DoctorReport& report) {
  std::string name = textOf(peer, kKeyOf<&PeerStatus::name>);
  if (flagOf(peer, kKeyOf<&PeerStatus::up>)) {
    for (const Json& subflow : listOf(peer, "subflows")) judgePath(patient, name, subflow, report);
    return report.fine("peer", name + " is up");
  }
  auto isIt = [&](const PeerConfig& p) { return p.options.name == name; };
  auto found = std::find_if(patient.config.peers.begin(), patient.config.peers.end(), isIt);
  bool called = found != patient.config.peers.end() &&
                (!found->options.endpoints.empty() || !found->hosts.empty());
  if (std::string refusal = textOf(peer, kKeyOf<&PeerStatus::refusal>); refusal != "-") {
    return report.wrong(
        {"peer", name + " is not up: " + refusal, "its session is refused", remedyFor(refusal)});
  }
  Json failure = lastFailure(history, name);
  if (!failure.is_null()) {
    std::string text = textOf(failure, kKeyOf<&PastEvent::text>);
    return report.wrong(
        {"peer", name + " is not up: " + text, "nothing goes to it", remedyFor(text)});
  }
  if (!called) {
    if (!anyUp) judgeCaller(status, history, name, report);
    return;
  }
  // There is a session, but none of its paths is validated.
  if (!listOf(peer, "subflows").empty()) {
    return report.wrong(
        {"mtu",
         name + " is not up: its handshakes come through, and datagrams of 1200 bytes do not",
         "no path may carry data before such a datagram has passed, both ways",
         "let UDP datagrams of 1200 bytes pass all firewalls, and raise the MTU of the path "
         "to 1280 or more"});
  }
  bool refused =
      lately(fieldOf(status, "host_drops"), history, kKeyOf<&RefusedCounts::sendErrors>) > 0;
  report.wrong({"peer",
                name + " is not up" +
                    (refused ? ": the kernel refuses to send to it" : ", and no handshake ended"),
                "nothing goes to it",
                refused ? "see to the routes (ip route get ADDRESS oif INTERFACE) and to firewall "
                          "rules at 'output'"
                        : "see to the uplinks and names above; the daemon's log has more"});
}

}  // namespace

void judgePath(const Patient& patient, const std::string& peer, const Json& subflow,
               DoctorReport& report) {
  std::string name = textOf(subflow, kKeyOf<&SubflowStatus::uplink>);
  std::string state = textOf(subflow, kKeyOf<&SubflowStatus::state>);
  std::string path = textOf(subflow, kKeyOf<&SubflowStatus::path>),
              remote = textOf(subflow, kKeyOf<&SubflowStatus::remote>);
  bool isOwn = name != "-";  // the listening side has no uplink
  std::string way = (path == remote ? "the path" : path) + " to " + peer + " at " + remote;
  if (state == "closed") return;  // its uplink is down, which another check reports
  std::string deadWay = textOf(subflow, kKeyOf<&SubflowStatus::deadWay>);
  if (deadWay == "out" || deadWay == "in") {
    bool out = deadWay == "out";
    return report.wrong(
        {"way",
         way + ": dead one way, it is " + state + ": " +
             (out ? "what this gateway sends does not arrive, and the peer is heard"
                  : "nothing comes from the peer, and what this gateway sends arrives"),
         "the path carries nothing: it must work both ways",
         std::string("find who drops UDP ") + (out ? "to " : "from ") + remote +
             (out ? ": a firewall at 'output' here or at 'input' there, the provider, a NAT "
                    "whose mapping is gone"
                  : ": a firewall or strict rp_filter at 'input' here, the provider, the "
                    "peer's route back")});
  }
  if (!isOwn) return;  // the side with the uplink reports what else is wrong with it
  if (state == "validating" || state == "suspect" || state == "failed") {
    return report.wrong(
        {"way", way + ": no answer comes back by this uplink, it is " + state,
         "the uplink carries nothing",
         "see to the line itself; then to strict rp_filter, a firewall that drops UDP, NAT, and "
         "uplinks.gateway"});
  }
  auto isIt = [&](const UplinkConfig& u) { return u.name == name; };
  auto uplink = std::find_if(patient.config.uplinks.begin(), patient.config.uplinks.end(), isIt);
  const Link* link =
      uplink == patient.config.uplinks.end() ? nullptr : patient.table.find(uplink->interface);
  double mtu = numberOf(subflow, kKeyOf<&SubflowStatus::mtu>);
  double promised =
      link ? std::min<double>(link->mtu, static_cast<double>(patient.config.tunnel.maxOuterMtu))
           : 0;
  bool probed = patient.config.tunnel.outerMtu == 0;
  if (probed && promised >= kOrdinaryPath && mtu < kNarrowPath) {
    return report.wrong(
        {"mtu",
         way + ": packets above " + formatNumber(mtu) + " bytes are lost on the way, although " +
             "the interface takes " + std::to_string(link->mtu),
         "large packets go by other uplinks only, or cut to small ones",
         "look for the hop with the small MTU ('tracepath " + textOf(subflow, "remote") +
             "') or the firewall that drops large datagrams; or set the interface's MTU to what "
             "passes"});
  }
  if (numberOf(subflow, kKeyOf<&SubflowStatus::minRtt>) >= kSlowMs) {
    return report.wrong(
        {"way",
         way + ": answers take " + cell<&SubflowStatus::minRtt>(subflow) +
             " at least: packets wait in a queue on the way",
         "calls and answers that go by it are late",
         "set uplinks.rate-limit of " + name +
             " (up:, down:) below what the line carries, which 'braidctl test --path " + name +
             "' measures; and see who else fills it, or to the modem's queue (fq_codel, SQM)"});
  }
  report.fine("way", way + ": RTT " + cell<&SubflowStatus::srtt>(subflow) +
                         ", carries packets of " + formatNumber(mtu) + " bytes");
}

void judgePeers(const Patient& patient, const Json& status, const Json& history,
                DoctorReport& report) {
  const Json::array_t& peers = listOf(status, "peers");
  bool anyUp = std::any_of(peers.begin(), peers.end(),
                           [](const Json& p) { return flagOf(p, kKeyOf<&PeerStatus::up>); });
  for (const Json& peer : peers) judgePeer(patient, status, history, peer, anyUp, report);
  Json stranger = fieldOf(history, "stranger");
  if (stranger.is_object()) {
    std::string text = textOf(stranger, kKeyOf<&PastEvent::text>);
    report.wrong(
        {"peer",
         "somebody at " + textOf(stranger, kKeyOf<&PastEvent::peer>) + " was turned away: " + text,
         "a peer whose pin here is wrong looks like this", remedyFor(text)});
  }
}

void judgeOffloads(const Json& traffic, DoctorReport& report) {
  if (countOf(traffic, kKeyOf<&SocketTraffic::mergingStopped>) > 0) {
    report.wrong(
        {"offloads",
         std::to_string(countOf(traffic, kKeyOf<&SocketTraffic::mergedDamaged>)) +
             " datagrams came damaged where the kernel had merged several (UDP GRO)",
         "they were lost; the daemon has switched merging off, which costs some speed",
         "update the network card's driver, or switch off what it merges (ethtool -K INTERFACE gro "
         "off rx-gro-hw off lro off); then restart the daemon"});
  }
  if (countOf(traffic, kKeyOf<&DeviceTraffic::refusedRuns>) > 0) {
    report.wrong({"offloads", "the kernel refuses several packets in one write to the device",
                  "they are written one by one, which costs some speed",
                  "a kernel with TUN offloads for them (UDP: Linux 6.2), or offloads.device: off"});
  }
}

namespace {

// Whether there are hosts to connect to behind some peer: a single address is the peer's own.
bool hasHosts(const Config& config) {
  return std::ranges::any_of(config.peers, [](const PeerConfig& peer) {
    return std::ranges::any_of(peer.options.prefixes,
                               [](const Prefix& p) { return p.length < p.address.bits(); });
  });
}

}  // namespace

void judgePortals(const Json& status, DoctorReport& report) {
  const std::string address = PortalWatch::nobodys().front().toString(),
                    nobodys = "http://" + address + "/";
  for (const Json& uplink : listOf(fieldOf(status, "gateway"), kKeyOf<&GatewayStatus::uplinks>)) {
    std::string page = textOf(uplink, kKeyOf<&UplinkStatus::portal>);
    if (page == "-") continue;
    // What is open, and behind ";" what is not, and why.
    const std::string told = textOf(uplink, kKeyOf<&UplinkStatus::portalOpen>),
                      open = told.substr(0, told.find(';'));
    std::string remedy = "log in with another device of that network";
    if (open.find(" of ") != std::string::npos)
      remedy = "open " +
               (open.find(" of " + address) != std::string::npos ? nobodys + " or " : "") + page +
               " at a host of the LAN, or " + remedy;
    report.wrong({"portal",
                  textOf(uplink, kKeyOf<&UplinkStatus::name>) +
                      ": a captive portal waits for a login at " + page,
                  "nothing else gets through by this uplink; for hosts of the LAN: " + told,
                  remedy});
  }
}

void judgeStreams(const Patient& patient, const Json& status, const Json& history, bool isUp,
                  DoctorReport& report) {
  Json streams = fieldOf(status, "streams");
  if (!flagOf(streams, kKeyOf<&StreamFigures::on>)) return;
  bool isWanted = hasHosts(patient.config) && !patient.config.streams.match.empty();
  if (isUp && isWanted && !flagOf(streams, kKeyOf<&StreamFigures::taking>)) {
    report.wrong({"streams", "no connection is taken over, although a peer is up",
                  "connections are carried as packets, without what streams give",
                  "both gateways need the section 'streams', and each other's networks as "
                  "prefixes; the log says when the kernel refuses the rules for it"});
  }
  uint64_t forbidden = lately(streams, history, kKeyOf<&RefusedCounts::forbidden>);
  if (forbidden < kManyForbidden) return;
  report.wrong({"streams",
                std::to_string(forbidden) +
                    " connections were refused as streams (ended_forbidden) in the last 10 "
                    "minutes: the gateway at the server's side does not let peers to "
                    "their destinations, or their hosts are in none of the prefixes that it has "
                    "for the other gateway",
                "the first connection between two such hosts is reset, the next ones are packets",
                "at the server's side 'forwarding: on', or the destinations in streams.accept, and "
                "the hosts' network in the peer's prefixes; or leave them out by streams.from or "
                "streams.exclude"});
}

namespace {

// Nothing of this is wrong with the gateway: a container or an older kernel may not have it.
void judgeRights(const Json& gateway, DoctorReport& report) {
  const char* key = kKeyOf<&GatewayStatus::unconfined>;
  if (!fieldOf(gateway, key).is_array()) return;  // an older daemon
  std::string left;
  for (const Json& each : listOf(gateway, key))
    if (each.is_string()) left += "; " + printable(each.get<std::string>());
  report.fine("rights", left.empty() ? "the daemon is confined to what it needs"
                                     : "the daemon keeps more than it needs" + left);
}

}  // namespace

void checkDaemon(const Patient& patient, DoctorReport& report) {
  if (!patient.daemon) return;
  const Json& status = patient.daemon->status;
  const Json& history = patient.daemon->history;
  judgeRights(fieldOf(status, "gateway"), report);
  // A path's size is not known at once.
  bool young = numberOf(fieldOf(status, "gateway"), kKeyOf<&GatewayStatus::uptime>) < kSearched;
  if (young) report.unknown("daemon", "it began only now: ask again in 10 s");
  if (!young) judgePeers(patient, status, history, report);
  for (const Json& uplink : listOf(fieldOf(status, "gateway"), kKeyOf<&GatewayStatus::uplinks>)) {
    Json meter = fieldOf(uplink, kKeyOf<&UplinkStatus::meter>);
    if (!flagOf(meter, kKeyOf<&MeterReading::closed>)) continue;
    report.wrong({"uplink",
                  textOf(uplink, kKeyOf<&UplinkStatus::name>) + ": its cap of " +
                      formatBytes(numberOf(meter, kKeyOf<&MeterReading::cap>)) + " is reached",
                  "nothing goes by it until " + cell<&MeterPeriodStatus::until>(meter),
                  "raise metered.cap and reload, to use it all the same"});
  }
  const Json& drops = fieldOf(status, kKeyOf<&TunnelStatus::drops>);
  uint64_t foreign = lately(drops, history, kKeyOf<&RefusedCounts::foreignSource>);
  if (foreign >= kManyForeign) {
    report.wrong(
        {"prefixes",
         std::to_string(foreign) +
             " packets of peers were dropped in the last 10 minutes: their sources are in none of "
             "the peer's prefixes (foreign_source)",
         "hosts behind the peer cannot use the tunnel",
         "add their network to the peer's 'prefixes' here, or mend the routes and NAT there"});
  }
  uint64_t between = lately(drops, history, kKeyOf<&RefusedCounts::betweenPeers>);
  if (between >= kManyBetween) {
    report.wrong(
        {"between-peers",
         std::to_string(between) +
             " packets from a peer to another one were dropped (between_peers) in the last "
             "10 minutes",
         "hosts behind one peer do not reach those behind another",
         "if they shall: 'between-peers: on' here, and each other's networks in "
         "device.routes and prefixes there; else nothing"});
  }
  judgeOffloads(fieldOf(status, "host_traffic"), report);
  const Json::array_t& peers = listOf(status, "peers");
  bool isUp =
      std::ranges::any_of(peers, [](const Json& p) { return flagOf(p, kKeyOf<&PeerStatus::up>); });
  judgeStreams(patient, status, history, !young && isUp, report);
  judgePortals(status, report);
  Json trace = fieldOf(status, "trace");
  if (std::string problem = textOf(trace, kKeyOf<&TraceStatus::problem>); problem != "-")
    report.wrong(
        {"trace", "the recovery trace: " + problem, "events are missing in it", "see to its disk"});
}

}  // namespace braid
