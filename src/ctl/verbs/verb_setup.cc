#include <openssl/rand.h>

#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client/interruption.h"
#include "ctl/join/cli_join.h"
#include "ctl/join/new_gateway.h"
#include "ctl/join/site.h"
#include "ctl/views/fields.h"
#include "gateway/join/address_plan.h"
#include "host/linux/netlink_monitor.h"

namespace braid {

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
  plan.networks =
      chooseNetworks(options, findLans(monitor.table(), outside, plan.device), terminal);
  RouterWish wish;
  wish.forwarding = wish.nat =
      agrees(options, "Shall this host pass on packets of the edges, with its own address (NAT)?",
             terminal);
  std::string yaml = withRouter(concentratorYaml(plan), wish);
  if (options.dryRun) return showYaml(options, plan.files, yaml, "", out);
  Interruption held;
  FolderLock lock(options);
  Transaction all;
  Identity identity = prepareIdentity(plan.files, all);
  putYaml(plan.files, yaml, all);
  steps << "the configuration is " << plan.files.yaml() << "\n" << std::flush;
  bool started = startGateway(options, plan.files, all, steps);
  finishYaml(plan.files, yaml, options.json ? err : out);
  steps << "let UDP port " << plan.port
        << " in; then let a gateway in with: braidctl invite NAME\n";
  if (options.json) {
    nlohmann::json made =
        madeGateway(plan.files, identity, plan.addresses, plan.networks, wish, started);
    made["port"] = plan.port;
    made["device"] = plan.device;
    out << prettyJson(made);
  }
  all.commit();
}

}  // namespace braid
