#include "ctl/join/gateway_yaml.h"

#include <algorithm>

#include "gateway/config/config.h"
#include "gateway/join/address_plan.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

template <typename List, typename Text>
std::string yamlItems(const List& list, Text&& text) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "\"" : ", \"") + text(item) + "\"";
  return "[" + out + "]";
}

std::string yamlOf(const std::vector<Prefix>& prefixes) {
  return yamlItems(prefixes, [](const Prefix& p) { return p.toString(); });
}
std::string yamlOf(const std::vector<InterfaceAddress>& addresses) {
  return yamlItems(addresses, [](const InterfaceAddress& a) { return a.toString(); });
}
std::string yamlOf(const std::vector<MarkMatch>& marks) {
  return yamlItems(marks, [](const MarkMatch& m) { return m.toString(); });
}
std::string yamlOf(const std::vector<HostPort>& addresses) {
  return yamlItems(addresses, formatHostPort);
}

std::string yamlOf(const PlannedUplink& uplink) {
  std::string text = "  - interface: \"" + uplink.interface + "\"\n";
  if (!uplink.name.empty() && uplink.name != uplink.interface)
    text += "    name: \"" + uplink.name + "\"\n";
  if (!uplink.cap.empty()) return text + "    metered: {cap: " + uplink.cap + "}   # in a month\n";
  return text +
         (uplink.metered ? "    use: metered   # carries only what the others cannot\n" : "");
}

std::string identityYaml(const std::string& name) {
  return "identity:\n  key: \"" + name +
         ".key\"            # beside this file; stays on this gateway, mode 0600\n" +
         "  certificate: \"" + name + ".crt\"\n\n";
}

std::string networksYaml(const std::vector<Prefix>& networks) {
  if (networks.empty()) return {};
  return "  networks: " + yamlOf(networks) +
         "   # the LANs on this side: no peer may send from them\n";
}

constexpr const char* kTail =
    "\n# Web connections (TCP ports 80, 443, 8080, 8443) end at the gateways and cross the tunnel "
    "as "
    "streams.\n"
    "streams:\n  enabled: on             # at both gateways; else all is carried as packets\n"
    "\nlog:\n  level: info\n";

}  // namespace

std::string edgeYaml(const EdgePlan& plan) {
  std::vector<Prefix> behind;
  for (const InterfaceAddress& a : plan.answer.edge) behind.push_back(networkOf(a));
  behind.insert(behind.end(), plan.answer.networks.begin(), plan.answer.networks.end());
  std::string text = "# Written by 'braidctl join'. The concentrator knows this gateway as '" +
                     plan.answer.name + "'.\n" +
                     "# braid.yaml(5) and docs/operations.md have every setting; 'braidctl check' "
                     "checks this file, "
                     "'braidctl reload'\n" +
                     "# takes it over. Every setting that is not here has a sound default.\n\n" +
                     identityYaml(plan.files.name) +
                     "device:\n  name: braid0\n  addresses: " + yamlOf(plan.answer.edge) +
                     "   # given by the concentrator\n";
  if (!plan.answer.networks.empty())
    text += "  routes: " + yamlOf(plan.answer.networks) + "   # what goes through the tunnel\n";
  if (takeAFamily(plan.answer.networks))
    text +=
        "  when-down: block   # while no peer is up: refused, also while the gateway does not run; "
        "'braidctl release' ends it\n";
  if (!plan.bypassMarks.empty())
    text += "  bypass-marks: " + yamlOf(plan.bypassMarks) +
            "   # other tunnels of this host, which pass beside this one\n";
  text += networksYaml(plan.networks) +
          "\n# One entry per way out. How to use them, if not all alike: use: backup; metered: "
          "{cap: 50GB, "
          "reset-day: 15};\n"
          "# rate-limit: {up: 5Mbit/s, down: 20Mbit/s}; weight: 3\nuplinks:\n";
  for (const PlannedUplink& uplink : plan.uplinks) text += yamlOf(uplink);
  text += "\npeers:\n  - name: concentrator\n    pin: " + formatPin(plan.pin) +
          "\n    endpoints: " + yamlOf(plan.concentrator) +
          "\n    # Addresses behind the concentrator: packets to them are sent there, packets from "
          "others are refused.\n"
          "    prefixes: " +
          yamlOf(behind) + "\n" + kTail;
  return text;
}

std::string concentratorYaml(const ConcentratorPlan& plan) {
  std::string port = std::to_string(plan.port);
  return "# Written by 'braidctl setup'. Edge routers come here; 'braidctl invite NAME' lets one "
         "in.\n"
         "# braid.yaml(5) and docs/operations.md have every setting; 'braidctl check' checks this "
         "file, "
         "'braidctl reload'\n"
         "# takes it over. Every setting that is not here has a sound default.\n\n" +
         identityYaml(plan.files.name) + "device:\n  name: \"" + plan.device +
         "\"\n  addresses: " + yamlOf(plan.addresses) +
         "   # this end of the tunnel; edges get addresses of the same networks\n" +
         networksYaml(plan.networks) + "\nlisten: [\"0.0.0.0:" + port + "\", \"[::]:" + port +
         "\"]   # UDP; must be let in\n"
         "\n# Those who were invited stand in files of their own (peers-folder). Others may be "
         "added here by "
         "hand.\npeers: []\n" +
         kTail;
}

std::string problemsOf(const ConfigResult& result) {
  std::string text;
  if (const auto* errors = std::get_if<ConfigErrors>(&result)) {
    for (const ConfigError& error : *errors) text += (text.empty() ? "" : "\n") + error.toString();
  }
  return text;
}

Config readConfig(const std::string& file) {
  LoadOptions options;
  options.checkIdentity = false;
  ConfigResult result = loadConfig(file, options);
  if (auto* config = std::get_if<Config>(&result)) return std::move(*config);
  std::string problems = problemsOf(result);
  throw std::runtime_error(problems.empty() ? file + ": cannot be read" : problems);
}

std::string withRouter(const std::string& yaml, const RouterWish& wish) {
  std::string text = yaml;
  if (wish.forwarding)
    text += "\n# Packets of other hosts are passed on while the gateway runs.\nforwarding: on\n";
  if (wish.betweenPeers)
    text += "\n# The edges reach each other's networks through this gateway.\nbetween-peers: on\n";
  if (wish.nat) text += "\n# What leaves the tunnel here has this host's address.\nnat: on\n";
  return text;
}

}  // namespace braid
