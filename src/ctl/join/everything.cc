#include "ctl/join/everything.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ctl/views/format.h"
#include "gateway/config/config.h"
#include "gateway/config/units.h"

namespace braid {
namespace {

constexpr Duration kLongestConfirmation = 1h;
constexpr int kMostProcesses = 32;  ///< from braidctl up to sshd

std::string readWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// "FROM PORT HERE PORT"
std::optional<SshLogin> parseConnection(const std::string& text) {
  std::istringstream in(text);
  std::string from, fromPort, here;
  in >> from >> fromPort >> here;
  const std::optional<Address> a = Address::parse(from), b = Address::parse(here);
  if (!a || !b) return std::nullopt;
  return SshLogin{*a, *b};
}

// proc_pid_stat(5): "PID (NAME) STATE PARENT ...". A name may hold anything.
pid_t parentOf(const std::string& stat) {
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream in(stat.substr(end + 1));
  std::string state;
  pid_t parent = 0;
  in >> state >> parent;
  return parent;
}

}  // namespace

std::optional<SshLogin> sshLogin(const std::string& proc, pid_t process) {
  constexpr std::string_view kName = "SSH_CONNECTION=";
  for (int i = 0; i < kMostProcesses && process > 1; ++i) {
    const std::string folder = proc + "/" + std::to_string(process);
    const std::string all = std::string(1, '\0') + readWhole(folder + "/environ");
    const size_t at = all.find(std::string(1, '\0').append(kName));
    if (at != std::string::npos)
      return parseConnection(all.c_str() + at + 1 + kName.size());  // up to the next '\0'
    process = parentOf(readWhole(folder + "/stat"));
  }
  return std::nullopt;
}

std::string everythingText(const std::vector<Prefix>& routes) {
  if (!takeAFamily(routes)) return "";
  const std::string left = familyLeftOut(routes);
  const std::string taken = left.empty() ? "IPv4 and IPv6" : left == "IPv4" ? "IPv6" : "IPv4";
  return "all " + taken +
         " traffic of this machine and of the networks behind it goes through the tunnel; while no "
         "peer is up it is refused (device.when-down: block)";
}

std::string loginWarning(const std::optional<SshLogin>& login, const std::vector<Prefix>& routes,
                         const std::vector<PlannedUplink>& uplinks, const NetworkTable& table,
                         bool confirmed) {
  const bool isTaken = login && std::ranges::any_of(routes, [&](const Prefix& route) {
                         return route.contains(login->from);
                       });
  if (!isTaken) return "";
  for (const PlannedUplink& uplink : uplinks) {
    const Link* link = table.find(uplink.interface);
    const bool isHere = link && std::ranges::any_of(link->addresses, [&](const LinkAddress& a) {
                          return a.address == login->here;
                        });
    if (isHere)
      return "you are logged in from " + login->from.toString() + " by " + uplink.interface +
             "'s address " + login->here.toString() +
             ". Answers to you go on leaving by that uplink, past the tunnel, and end with it. A "
             "connection that this machine begins to you goes through the tunnel" +
             (confirmed ? "" : ". Nobody will ask whether you still reach this machine");
  }
  return "";
}

void agreeToEverything(const EverythingWish& wish, UserTerminal& terminal, std::ostream& steps) {
  const std::vector<Prefix>& routes = wish.plan.answer.networks;
  const std::string text = everythingText(routes);
  if (text.empty()) return;
  steps << paragraph("note: once this gateway runs, " + text);
  const std::string warning =
      loginWarning(sshLogin(), routes, wish.plan.uplinks, wish.table, wish.confirmed);
  if (!warning.empty()) steps << paragraph("warning: " + warning);
  steps << std::flush;
  if (wish.agreed || !terminal.isThere() ||
      terminal.askYes("Everything will go through the tunnel. Go on?", true))
    return;
  throw std::runtime_error(
      "not wanted: nothing of this attempt is left here, and the invitation is good again after 10 "
      "minutes. For a tunnel to some networks only, invite "
      "with them at the concentrator ('braidctl invite NAME --network NETWORK')");
}

Duration confirmationTime(const std::string& within, bool asks) {
  std::optional<Duration> time = within == "0" ? Duration{} : parseDuration(within);
  if (!time || *time > kLongestConfirmation)
    throw std::runtime_error("--confirm-within must be 0 or a time up to 1h, such as 2min");
  return asks ? *time : Duration{};
}

void waitForConfirmation(const EdgePlan& plan, Duration limit, UserTerminal& terminal) {
  if (!takeAFamily(plan.answer.networks) || limit == 0s) return;
  std::string within = durationText(limit);
  if (terminal.askYesWithin("All traffic now goes through the tunnel. Without a yes within " +
                                within +
                                ", everything is taken back.\n"
                                "Is this machine still reached? [y/N] ",
                            limit))
    return;
  throw std::runtime_error(
      "not confirmed within " + within +
      ": nothing of this attempt is left here. The concentrator still knows '" + plan.answer.name +
      "': take it out there, or invite this machine by another name. Without "
      "this question: --confirm-within 0");
}

}  // namespace braid
