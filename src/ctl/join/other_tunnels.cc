#include "ctl/join/other_tunnels.h"

#include <linux/rtnetlink.h>

#include <algorithm>

#include "host/system.h"

namespace braid {

namespace {

bool hasOtherConditions(const RuleSpec& rule) {
  return rule.from.length > 0 || !rule.outInterface.empty() || rule.localOnly ||
         rule.protocol != 0 || rule.sourcePort != 0 || rule.destinationPort != 0;
}

// Whether the rule keeps packets with its mark out of a tunnel: it leads all others into one (as
// that of wg-quick), or these by the host's own routes (as those of Tailscale).
bool sparesItsMark(const FoundRule& rule) {
  const RuleSpec& spec = rule.spec;
  if (!rule.isWhole || spec.mark == 0 || hasOtherConditions(spec) || spec.suppressPrefixLength)
    return false;
  bool isHostsOwn = spec.table == RT_TABLE_MAIN || spec.table == RT_TABLE_DEFAULT;
  return spec.inverted != isHostsOwn;
}

bool isAmong(const std::vector<MarkMatch>& list, const MarkMatch& mark) {
  return std::ranges::find(list, mark) != list.end();
}

std::string textOfMarks(const std::vector<MarkMatch>& marks) {
  std::string out;
  for (const MarkMatch& mark : marks) out += (out.empty() ? "" : ", ") + mark.toString();
  return out;
}

}  // namespace

std::optional<DroppedTunnels> tunnelsDroppedBy(const Config& config,
                                               const std::vector<FoundRule>& rules) {
  if (config.device.whenDown != DeviceConfig::WhenDown::kBlock ||
      !takeAFamily(config.device.routes))
    return std::nullopt;
  const HostNumbers numbers = numbersOf(config);
  std::vector<MarkMatch> all = config.device.bypassMarks;
  DroppedTunnels out;
  for (const FoundRule& rule : rules) {
    MarkMatch mark{rule.spec.mark, rule.spec.markMask};
    if (!sparesItsMark(rule) || numbers.mayBeOwn(mark) || isAmong(all, mark) ||
        all.size() == kMaxBypassMarks)
      continue;
    out.what += (out.what.empty() ? "" : ", ") + rule.spec.toString();
    out.marks.push_back(mark);
    all.push_back(mark);
  }
  if (out.marks.empty()) return std::nullopt;
  out.what += ": by " + textOfMarks(out.marks) +
              " another tunnel of this host knows the packets that carry it";
  out.why =
      "the guard (device.when-down: block) drops them where they leave past Braid's tunnel, so "
      "that tunnel's connections break";
  out.remedy = "add 'bypass-marks: [" + textOfMarks(all) +
               "]' to device and reload, if this host may send them past the tunnel";
  return out;
}

std::vector<std::string> otherTunnelsWarnings(const Config& config) {
  try {
    NetlinkSocket socket(0);
    std::optional<DroppedTunnels> found = tunnelsDroppedBy(config, readRules(socket));
    if (found) return {found->what + "; " + found->why + ". Remedy: " + found->remedy};
  } catch (const SystemError&) {
    // What cannot be read is not judged.
  }
  return {};
}

}  // namespace braid
