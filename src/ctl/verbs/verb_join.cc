#include <unistd.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client/interruption.h"
#include "ctl/client/service.h"
#include "ctl/join/cli_join.h"
#include "ctl/join/join_call.h"
#include "ctl/join/new_gateway.h"
#include "ctl/join/site.h"
#include "ctl/views/fields.h"
#include "gateway/config/config.h"
#include "gateway/join/invitation.h"
#include "host/linux/netlink_monitor.h"

namespace braid {

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

std::vector<std::string> chooseUplinks(const JoinOptions& options, const NetworkTable& table) {
  for (const std::string& name : options.uplinks) {
    if (!table.find(name))
      throw std::runtime_error("there is no interface " + name + "; 'ip link' lists them");
  }
  std::vector<std::string> uplinks =
      options.uplinks.empty() ? findUplinks(table, kDevice) : options.uplinks;
  if (uplinks.empty())
    throw std::runtime_error(
        "no interface that is up has a default route; connect one, or name those to use with "
        "--uplink");
  return uplinks;
}

std::string textOfNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Prints the configuration as it will be, with example addresses instead of those that only the
// concentrator knows.
void showPlan(const JoinOptions& options, EdgePlan plan, const RouterWish& wish,
              std::ostream& out) {
  plan.answer.name = "NAME";
  plan.answer.edge = {{*Address::parse("10.99.0.2"), 24}};
  showYaml(
      options, plan.files, withRouter(edgeYaml(plan), wish),
      "; the concentrator gives name, addresses, routes and prefixes, which are examples here.",
      out);
}

// Returns whether the concentrator answered an echo request through the tunnel. Throws when the
// gateway never reached its concentrator, so that it is removed. A gateway that is up but gets no
// echo reply stays.
bool waitForPacket(const EdgePlan& plan, std::ostream& steps) {
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
  if (!isUp(plan.files))
    throw std::runtime_error(
        "the concentrator was not reached by the tunnel in 30 s; nothing is left of this attempt, "
        "and the same invitation may be used again");
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
  Invitation invitation = readInvitation(options, terminal);
  plan.files = newFiles(options);
  NetlinkMonitor monitor;
  plan.uplinks = chooseUplinks(options, monitor.table());
  plan.networks =
      chooseNetworks(options, findLans(monitor.table(), plan.uplinks, kDevice), terminal);
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
  steps << "uplinks: " << textOfNames(plan.uplinks) << "\n" << std::flush;
  plan.answer = callToJoin({identity, invitation, plan.networks, plan.uplinks});
  std::string refusal = refusalText(plan.answer);
  if (refusal.empty() && !hasIpv6()) plan.answer = withoutIpv6(plan.answer);
  if (refusal.empty() && plan.answer.edge.empty())
    refusal =
        "the concentrator's tunnel has only IPv6, and this machine has none; switch it on here, or "
        "add IPv4 "
        "there";
  if (refusal.empty()) refusal = clashText(plan.answer, monitor.table(), kDevice);
  if (!refusal.empty()) throw std::runtime_error(refusal);
  std::string yaml = withRouter(edgeYaml(plan), wish);
  putYaml(plan.files, yaml, all);
  steps << "joined as '" << plan.answer.name << "'; the configuration is " << plan.files.yaml()
        << "\n"
        << std::flush;
  if (std::string left = familyLeftOut(plan.answer.networks);
      left == "IPv4" || (left == "IPv6" && hasIpv6()))
    steps << "warning: " << left
          << " of this machine leaves in clear, past the tunnel; 'braidctl check "
          << plan.files.yaml() << "' names the remedy\n";
  bool started = startGateway(options, plan.files, all, steps), answered = false;
  if (started) {
    answered = waitForPacket(plan, steps);
  } else {
    steps << "it must come within 10 minutes: then the concentrator forgets it, and the invitation "
             "is open "
             "again\n";
  }
  finishYaml(plan.files, yaml, options.json ? err : out);
  if (options.json) {
    nlohmann::json made =
        madeGateway(plan.files, identity, plan.answer.edge, plan.networks, wish, started);
    made["name"] = plan.answer.name;
    made["uplinks"] = plan.uplinks;
    made["routes"] = textsOf(plan.answer.networks);
    made["answered"] = answered;
    out << prettyJson(made);
  }
  all.commit();
}

}  // namespace braid
