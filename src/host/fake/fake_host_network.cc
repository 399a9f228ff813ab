#include "host/fake/fake_host_network.h"

#include <cerrno>

#include "host/system_error.h"

namespace braid {

void FakeHostNetwork::changed() {
  if (onChange_) onChange_();
}

std::vector<NetworkChange> FakeHostNetwork::process() {
  std::vector<NetworkChange> changes = table_.changesSince(told_);
  told_ = table_;
  return changes;
}

void FakeHostNetwork::add(const std::string& line) {
  if (refuse_) throw SystemError(EPERM, "refused " + line);
  ++adds_;
  configured_.insert(line);
}

void FakeHostNetwork::setLinkUp(const std::string& device) {
  configured_.insert(device + " up");
}

void FakeHostNetwork::setMtu(const std::string& device, uint32_t mtu) {
  std::string key = device + " MTU ";
  std::erase_if(configured_, [&](const std::string& line) { return line.starts_with(key); });
  configured_.insert(key + std::to_string(mtu));
}

void FakeHostNetwork::addAddress(const std::string& device, const InterfaceAddress& address) {
  configured_.insert("address " + address.toString() + " on " + device);
}

void FakeHostNetwork::removeAddress(const std::string& device, const InterfaceAddress& address) {
  configured_.erase("address " + address.toString() + " on " + device);
}

void FakeHostNetwork::setMaster(const std::string& device, const std::string& bridge) {
  configured_.insert(device + " master " + bridge);
}

std::vector<std::string> FakeHostNetwork::undo() {
  configured_.clear();
  return {};
}

}  // namespace braid
