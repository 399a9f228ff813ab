#include "gateway/network/nat_manager.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <sstream>
#include <utility>
#include <vector>

#include "gateway/config/address_ranges.h"
#include "gateway/config/state_file.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr size_t kMostMemory = 1 << 20;  // names of many thousand interfaces
constexpr Address::Family kFamilies[] = {Address::Family::kV4, Address::Family::kV6};

Translation translationOf(const Config& config, const std::vector<std::string>& uplinks,
                          const std::string& device, const HostNumbers& numbers) {
  Translation out;
  out.device = device;
  out.masqueradeV4 = config.router.natV4;
  out.masqueradeV6 = config.router.natV6;
  out.forwards = config.router.forwards;
  std::vector<Prefix> prefixes;
  for (const PeerConfig& peer : config.peers)
    prefixes.insert(prefixes.end(), peer.options.prefixes.begin(), peer.options.prefixes.end());
  out.sources = joined(rangesOf(std::move(prefixes)));
  if (config.device.whenDown == DeviceConfig::WhenDown::kDirect) {
    out.uplinks = uplinks;
    out.direct = joined(rangesOf(config.device.routes));
    out.tunnelledMark = numbers.tunnelledMark();
    out.markMask = numbers.markMask;
  }
  return out;
}

std::string nameOf(Address::Family family) {
  return family == Address::Family::kV4 ? "ipv4" : "ipv6";
}

// The file's line for an address family: the family's name, and then
// HostNetwork::forwardingBefore(). "-": only the name, as releases before 2026-11-27 wrote it.
// Empty: no line.
std::string lineOf(const std::string& memory, Address::Family family) {
  std::istringstream lines(memory);
  for (std::string line; std::getline(lines, line);) {
    if (line == nameOf(family)) return "-";
    if (line.starts_with(nameOf(family) + " ")) return line.substr(nameOf(family).size() + 1);
  }
  return "";
}

std::string memoryOf(Address::Family family, const std::string& before) {
  return before.empty() ? "" : nameOf(family) + " " + before + "\n";
}

}  // namespace

void NatManager::configure(const Config& next, const std::vector<std::string>& uplinks) {
  Translation wanted = translationOf(next, uplinks, device_, numbers_);
  bool begins = !wanted.isEmpty() && !translator_;
  if (begins) translator_ = host_.openTranslator(device_);
  if (translator_ && !(wanted == applied_)) translator_->set(wanted);
  if (begins) forgetTunnelled();  // those of an earlier process
  Translation before = std::exchange(applied_, std::move(wanted));
  try {
    forward(next, uplinks);
  } catch (const SystemError&) {
    applied_ = std::move(before);
    if (translator_) translator_->set(applied_);
    throw;
  }
  if (applied_.isEmpty()) translator_.reset();
}

void NatManager::forgetTunnelled() {
  if (!translator_) return;
  try {
    translator_->forgetTunnelled();
  } catch (const SystemError& e) {
    spdlog::warn("{}", e.what());
  }
}

// If the file says that forwarding was switched on by this gateway, its values count instead of the
// host's present ones. The file is written before forwarding is switched on. If the daemon is
// killed in between, the next one switches it on again.
void NatManager::forward(const Config& next, const std::vector<std::string>& uplinks) {
  HostNetwork& network = host_.network();
  if (!next.router.forwarding) return endForwarding();
  bool begins = !std::exchange(forwards_, true);
  if (begins) {
    memory_ = next.control.socket + ".forwarding";
    remembered_ = readStateFile(memory_, kMostMemory);
    std::string text;
    for (Address::Family family : kFamilies) {
      std::string left = lineOf(remembered_, family);
      text += memoryOf(family, left.empty() ? network.forwardingBefore(family) : left);
    }
    remember(text);
  }
  try {
    for (Address::Family family : kFamilies)
      network.setForwarding(family, uplinks, lineOf(remembered_, family));
  } catch (const SystemError&) {
    if (begins) endForwarding();
    throw;
  }
  note();
}

void NatManager::endForwarding() {
  if (!std::exchange(forwards_, false)) return;
  for (Address::Family family : kFamilies) {
    try {
      host_.network().removeForwarding(family);
    } catch (const SystemError& e) {
      spdlog::warn("{}", e.what());
    }
  }
  note();
}

void NatManager::stop() {
  translator_.reset();
  applied_ = {};
  endForwarding();
}

void NatManager::configureOrWarn(const Config& config, const std::vector<std::string>& uplinks) {
  try {
    configure(config, uplinks);
  } catch (const SystemError& e) {
    spdlog::warn("{}", e.what());
  }
}

void NatManager::note() {
  std::string text;
  for (Address::Family family : kFamilies) {
    if (forwards_) text += memoryOf(family, host_.network().forwardingBefore(family));
  }
  remember(text);
}

void NatManager::remember(const std::string& text) {
  if (memory_.empty() || text == remembered_) return;
  remembered_ = text;
  if (text.empty()) {
    ::unlink(memory_.c_str());
  } else if (std::string problem = writeStateFile(memory_, text, 0640); !problem.empty()) {
    spdlog::warn("forwarding: {}; if the daemon is killed, forwarding stays on", problem);
  }
}

}  // namespace braid
