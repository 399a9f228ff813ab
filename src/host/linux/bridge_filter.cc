#include "host/linux/bridge_filter.h"

#include <unistd.h>

#include <optional>

#include "host/linux/files.h"
#include "host/linux/forwarding.h"

namespace braid {

namespace {

// nullopt: the file is missing, or it cannot be read.
std::optional<bool> isOn(const std::string& file) {
  std::optional<std::string> text = textOfFile(file);
  return text ? std::optional(text->starts_with('1')) : std::nullopt;
}

// Whether it is switched on for all bridges of the host. Where a service cannot see that, it counts
// as on, which is the default, if the kernel has it at all.
bool isOnForAll(const std::string& name, const std::string& root) {
  for (const char* folder : {Forwarding::kFolder, Forwarding::kServiceFolder})
    if (auto on = isOn(root + folder + "/bridge/bridge-nf-call-" + name)) return *on;
  return ::access((root + "/sys/module/br_netfilter").c_str(), F_OK) == 0;
}

}  // namespace

bool isFilteredBridge(const std::string& interface, bool v6, const std::string& root) {
  std::string name = v6 ? "ip6tables" : "iptables";
  std::string bridge = root + "/sys/class/net/" + interface + "/bridge";
  if (::access(bridge.c_str(), F_OK) != 0) return false;
  return isOn(bridge + "/nf_call_" + name).value_or(false) || isOnForAll(name, root);
}

}  // namespace braid
