#include <openssl/rand.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client/client.h"
#include "ctl/client/daemon_log.h"
#include "ctl/client/service.h"
#include "ctl/join/everything.h"
#include "ctl/join/join_call.h"
#include "ctl/join/new_gateway.h"
#include "ctl/join/other_tunnels.h"
#include "ctl/join/site.h"
#include "ctl/join/uplink_choice.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "gateway/config/config.h"
#include "gateway/config/units.h"
#include "gateway/control/requests.h"
#include "gateway/join/address_plan.h"
#include "gateway/join/invitation.h"
#include "host/linux/netlink_monitor.h"

namespace braid {

void invite(const InviteOptions& options, const std::string& socket, bool json, std::ostream& out,
            std::ostream& err) {
  std::optional<Duration> lifetime = parseDuration(options.validFor);
  if (!lifetime || *lifetime < InviteRequest::kShortest || *lifetime > InviteRequest::kLongest)
    throw std::runtime_error("--valid-for must be a time from 1min to 30d, such as 2h");
  nlohmann::json answer = askWith(findSocket(socket), "invite",
                                  {{"name", options.name},
                                   {"addresses", options.addresses},
                                   {"networks", options.networks},
                                   {"seconds", static_cast<uint64_t>(*lifetime / 1s)}});
  std::string line = textOf(answer, "line");
  auto parsed = parseInvitation(line);
  auto* invitation = std::get_if<Invitation>(&parsed);
  if (!invitation)
    throw std::runtime_error("the daemon gives no invitation; is it of another release?");
  if (json) {
    answer["expires_unix_s"] = invitation->expires;
    out << prettyJson(answer);
    return;
  }
  out << line << '\n';
  err << "Good for one gateway, until " << formatUtc(invitation->expires)
      << ".\nAt that gateway run 'braidctl join' and paste the line: it is a secret.\n";
  std::string note =
      answer.value("note", nlohmann::json()).is_string() ? textOf(answer, "note") : "";
  if (!note.empty()) err << paragraph("Note: " + note);
}

namespace {

constexpr unsigned kTunnelV6Length = 64;

InterfaceAddress parseTunnel(const std::string& text) {
  size_t slash = text.find('/');
  std::optional<Address> address = Address::parse(text.substr(0, slash));
  std::optional<Prefix> network = slash == std::string::npos ? std::nullopt : Prefix::parse(text);
  if (!address || !network || network->length == 0)
    throw std::runtime_error("'" + text +
                             "' is no address with a length; write one such as 10.99.0.1/24");
  return {*address, network->length};
}

// A random network of this site's own (RFC 4193 section 3.2.2).
InterfaceAddress drawTunnelV6() {
  std::array<uint8_t, 16> bytes{0xfd};
  if (RAND_bytes(&bytes[1], 5) != 1) throw std::runtime_error("OpenSSL has no randomness");
  bytes[15] = 1;
  return {Address::v6(bytes), kTunnelV6Length};
}

std::vector<InterfaceAddress> chooseTunnel(const SetupOptions& options, const NetworkTable& table) {
  std::vector<InterfaceAddress> tunnel;
  for (const std::string& text : options.tunnel) tunnel.push_back(parseTunnel(text));
  if (tunnel.empty()) {
    tunnel = {parseTunnel("10.99.0.1/24")};
    if (hasIpv6()) tunnel.push_back(drawTunnelV6());
  }
  for (const InterfaceAddress& own : tunnel) {
    for (const auto& [index, link] : table.links()) {
      for (const LinkAddress& a : link.addresses) {
        if (!networkOf(own).overlaps(networkOf({a.address, a.prefixLength}))) continue;
        throw std::runtime_error("the tunnel's network " + networkOf(own).toString() +
                                 " overlaps " + a.address.toString() + "/" +
                                 std::to_string(a.prefixLength) + " of " + link.name +
                                 "; name another with --tunnel ADDRESS/LENGTH");
      }
    }
  }
  return tunnel;
}

// The LANs of this machine, those without a carrier among them, when the user agrees.
std::vector<Prefix> chooseLans(const NewGateway& options, const NetworkTable& table,
                               const std::vector<std::string>& uplinks, const std::string& device,
                               UserTerminal& terminal, std::ostream& remarks) {
  std::vector<Prefix> found = findLans(table, uplinks, device);
  std::vector<DarkLan> dark = findDarkLans(table, uplinks, device);
  if (!options.networks.empty()) return chooseNetworks(options, found, false, terminal);
  for (const DarkLan& lan : dark) {
    remarks << lan.interface << " has no carrier now";
    if (lan.networks.empty())
      remarks
          << ", and no address: if a LAN is to be there, name its network by --network, or plug "
             "it in first\n";
    else
      remarks << "; its network is proposed all the same\n";
    for (const Prefix& network : lan.networks)
      if (std::ranges::find(found, network) == found.end()) found.push_back(network);
  }
  remarks << std::flush;
  return chooseNetworks(options, found, !dark.empty(), terminal);
}

nlohmann::json firewallJson(const FirewallAnswer& answer) {
  return {{"allowed", answer.allowed}, {"dropped", answer.warnings}};
}

}  // namespace

void setup(const SetupOptions& options, std::ostream& out, std::ostream& err) {
  std::ostream silent(nullptr);
  std::ostream& steps = options.json ? silent : out;
  UserTerminal terminal;
  ConcentratorPlan plan;
  plan.files = newFiles(options);
  plan.port = options.port;
  plan.device = options.device;
  NetlinkMonitor monitor;
  plan.addresses = chooseTunnel(options, monitor.table());
  std::vector<std::string> outside = findUplinks(monitor.table(), plan.device);
  plan.networks = chooseLans(options, monitor.table(), outside, plan.device, terminal,
                             options.json ? err : out);
  RouterWish wish;
  wish.forwarding = wish.nat =
      agrees(options, "Shall this host pass on packets of the edges, with its own address (NAT)?",
             terminal);
  wish.betweenPeers =
      options.betweenPeers ||
      (!options.yes && terminal.isThere() &&
       terminal.askYes("Shall the edges reach each other's networks through this host?", false));
  std::string yaml = withRouter(concentratorYaml(plan), wish);
  if (options.dryRun) return showYaml(options, plan.files, yaml, "", out);
  Interruption held;
  FolderLock lock(options);
  Transaction all;
  Identity identity = prepareIdentity(plan.files, all);
  putYaml(plan.files, yaml, all);
  steps << "the configuration is " << plan.files.yaml() << "\n" << std::flush;
  FirewallAnswer firewall = openFirewall(options, plan.files, all, terminal, steps);
  bool started = startGateway(options, plan.files, all, steps);
  finishYaml(plan.files, yaml, options.json ? err : out);
  steps << "let UDP port " << plan.port
        << " in; then let a gateway in with: braidctl invite NAME\n";
  if (options.json) {
    nlohmann::json made =
        madeGateway(plan.files, identity, plan.addresses, plan.networks, wish, started);
    made["firewall"] = firewallJson(firewall);
    made["port"] = plan.port;
    made["device"] = plan.device;
    out << prettyJson(made);
  }
  all.commit();
}

namespace {

constexpr const char* kDevice = "braid0";
constexpr Duration kEchoPatience = 30s;

std::string readUpTo(std::istream& in) {
  std::string text(kMaxInvitationLine + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

std::string invitationText(const JoinOptions& options, UserTerminal& terminal) {
  if (!options.line.empty()) return options.line;
  if (!options.file.empty() && options.file != "-") {
    std::ifstream file(options.file);
    if (!file) throw std::runtime_error(options.file + ": cannot be opened; check the path");
    return readUpTo(file);
  }
  if (options.file.empty() && isatty(STDIN_FILENO) != 0)
    return terminal.ask("The invitation, as 'braidctl invite' printed it (it is not shown): ", true)
        .value_or("");
  return readUpTo(std::cin);
}

Invitation readInvitation(const JoinOptions& options, UserTerminal& terminal) {
  auto parsed = parseInvitation(invitationText(options, terminal));
  if (auto* problem = std::get_if<std::string>(&parsed)) throw std::runtime_error(*problem);
  return std::get<Invitation>(std::move(parsed));
}

// Prints the configuration as it will be, with example addresses instead of those that only the
// concentrator knows.
void showPlan(const JoinOptions& options, EdgePlan plan, const RouterWish& wish,
              std::ostream& out) {
  plan.answer.name = "NAME";
  plan.answer.edge = {{*Address::parse("10.99.0.2"), 24}};
  showYaml(
      options, plan.files, withRouter(edgeYaml(plan), wish),
      "; the concentrator gives name, addresses, routes and prefixes, which are examples here.\n"
      "# uplinks: " +
          describe(plan.uplinks) +
          "\n# If the invitation was made with '--network 0.0.0.0/0 --network ::/0', " +
          everythingText({*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")}) +
          ".\n# Then join asks before it starts (--everything: it does not).",
      out);
}

// The marks of other tunnels of this machine that the new gateway's guard would cut, if the user
// agrees that it spares them.
std::vector<MarkMatch> chooseBypassMarks(const JoinOptions& options, const EdgePlan& plan,
                                         UserTerminal& terminal, std::ostream& steps) {
  Config config;
  config.device.routes = plan.answer.networks;
  config.device.whenDown = DeviceConfig::WhenDown::kBlock;
  NetlinkSocket socket(0);
  std::optional<DroppedTunnels> found = tunnelsDroppedBy(config, readRules(socket));
  if (!found) return {};
  steps << paragraph("note: " + printable(found->what)) << std::flush;
  if (found->clashing.empty() &&
      (options.yes ||
       (terminal.isThere() &&
        terminal.askYes("Shall this host send such packets past Braid's tunnel? Else the other "
                        "tunnel's connections break.",
                        true))))
    return found->marks;
  steps << paragraph("note: " + found->why + ". Remedy: " + found->remedy);
  return {};
}

// Returns whether the concentrator answered an echo request through the tunnel. Throws when the
// gateway never reached its concentrator, so that it is removed. A gateway that is up but gets no
// echo reply stays.
bool waitForPacket(const EdgePlan& plan, std::time_t since, std::ostream& steps) {
  Address to, own;
  for (const InterfaceAddress& edge : plan.answer.edge) {
    for (const Address& address : plan.answer.concentrator) {
      if (to.bits() || address.family != edge.address.family) continue;
      to = address;
      own = edge.address;
    }
  }
  if (to.bits() && waitForEcho(own, to, kEchoPatience)) {
    steps << "the first packet went through: " << to.toString() << " answers\n";
    return true;
  }
  if (!isUp(plan.files)) {
    const std::string reason = decisiveLine(readDaemonLog(plan.files.name, since));
    throw std::runtime_error("the concentrator was not reached by the tunnel in 30 s" +
                             (reason.empty() ? "" : ": " + reason) +
                             "; nothing is left of this attempt, and the same invitation may be "
                             "used again");
  }
  steps << "the tunnel is up, but " << to.toString()
        << " does not answer a ping: a firewall at the concentrator may be why; see 'braidctl "
           "status'\n";
  return false;
}

}  // namespace

void join(const JoinOptions& options, std::ostream& out, std::ostream& err) {
  std::ostream silent(nullptr);
  std::ostream& steps = options.json ? silent : out;
  UserTerminal terminal;
  EdgePlan plan;
  const bool asks = !options.yes && terminal.isThere();
  const Duration confirmation = confirmationTime(options.confirmWithin, asks);
  Invitation invitation = readInvitation(options, terminal);
  plan.files = newFiles(options);
  NetlinkMonitor monitor;
  plan.uplinks = chooseUplinks({options.uplinks, options.metered}, options.yes, monitor.table(),
                               kDevice, terminal);
  const std::vector<std::string> interfaces = interfacesOf(plan.uplinks);
  plan.networks =
      chooseLans(options, monitor.table(), interfaces, kDevice, terminal, options.json ? err : out);
  plan.concentrator = invitation.addresses;
  plan.pin = invitation.pin;
  RouterWish wish;
  wish.forwarding = !plan.networks.empty() &&
                    agrees(options, "Shall this host pass on packets of these networks?", terminal);
  if (options.dryRun) return showPlan(options, plan, wish, out);

  Interruption held;
  FolderLock lock(options);
  Transaction all;
  Identity identity = prepareIdentity(plan.files, all);
  steps << "uplinks: " << describe(plan.uplinks) << "\n" << std::flush;
  plan.answer = callToJoin({identity, invitation, plan.networks, interfaces});
  std::string refusal = refusalText(plan.answer, invitation);
  if (refusal.empty() && !hasIpv6()) plan.answer = withoutIpv6(plan.answer);
  if (refusal.empty() && plan.answer.edge.empty())
    refusal =
        "the concentrator's tunnel has only IPv6, and this machine has none; switch it on here, or "
        "add IPv4 "
        "there";
  if (refusal.empty()) refusal = clashText(plan.answer, monitor.table(), kDevice);
  if (!refusal.empty()) throw std::runtime_error(refusal);
  agreeToEverything({plan, monitor.table(), options.everything || options.yes, confirmation > 0s},
                    terminal, steps);
  plan.bypassMarks = chooseBypassMarks(options, plan, terminal, steps);
  std::string yaml = withRouter(edgeYaml(plan), wish);
  putYaml(plan.files, yaml, all);
  steps << "joined as '" << plan.answer.name << "'; the configuration is " << plan.files.yaml()
        << "\n"
        << std::flush;
  if (!plan.answer.text.empty()) steps << paragraph("note: " + printable(plan.answer.text));
  if (std::string left = familyLeftOut(plan.answer.networks);
      left == "IPv4" || (left == "IPv6" && hasIpv6()))
    steps << paragraph("note: " + left +
                       " is not routed into the tunnel, and so it is refused ('device.when-down: "
                       "block' in " +
                       plan.files.yaml() + ")");
  FirewallAnswer firewall = openFirewall(options, plan.files, all, terminal, steps);
  const std::time_t begun = std::time(nullptr);
  bool started = startGateway(options, plan.files, all, steps), answered = false;
  if (started) {
    answered = waitForPacket(plan, begun, steps);
    waitForConfirmation(plan, confirmation, terminal);
  } else {
    steps << "it must come within 10 minutes: then the concentrator forgets it, and the invitation "
             "is open "
             "again\n";
  }
  finishYaml(plan.files, yaml, options.json ? err : out);
  if (options.json) {
    nlohmann::json made =
        madeGateway(plan.files, identity, plan.answer.edge, plan.networks, wish, started);
    made["firewall"] = firewallJson(firewall);
    made["name"] = plan.answer.name;
    made["metered"] = nlohmann::json::array();
    made["uplinks"] = interfaces;
    for (const PlannedUplink& uplink : plan.uplinks)
      if (uplink.metered) made["metered"].push_back(uplink.interface);
    made["routes"] = textsOf(plan.answer.networks);
    made["bypass_marks"] = textsOf(plan.bypassMarks);
    made["answered"] = answered;
    out << prettyJson(made);
  }
  all.commit();
}

}  // namespace braid
