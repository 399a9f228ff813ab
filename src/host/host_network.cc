#include "host/host_network.h"

namespace braid {

namespace {

std::string where(const Address& via, const std::string& device, uint32_t table, uint32_t metric) {
  std::string out;
  if (via.bits()) out += " via " + via.toString();
  if (!device.empty()) out += " dev " + device;
  if (table != kMainTable) out += " table " + std::to_string(table);
  if (metric) out += " metric " + std::to_string(metric);
  return out;
}

}  // namespace

std::string InterfaceAddress::toString() const {
  return address.toString() + "/" + std::to_string(length);
}

std::string RouteSpec::toString() const {
  if (local) return "local route " + destination.toString() + where(via, device, table, metric);
  return "route " + (destination.length ? destination.toString() : "default") +
         where(via, device, table, metric);
}

std::string RuleSpec::toString() const {
  std::string out = family == Address::Family::kV4 ? "IPv4 rule" : "IPv6 rule";
  out += " " + std::to_string(priority) + ":";
  if (from.length) out += " from " + from.toString();
  if (!outInterface.empty()) out += " oif " + outInterface;
  if (mark) out += " fwmark " + std::to_string(mark);
  out += " lookup " + std::to_string(table);
  if (suppressPrefixLength)
    out += " suppress_prefixlength " + std::to_string(*suppressPrefixLength);
  return out;
}

}  // namespace braid
