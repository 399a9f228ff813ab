// `streams`: which TCP connections the gateways take apart, and what streams may hold.

#include "gateway/config/config_sections.h"

namespace braid {
namespace {

/// Ours: a packet that begins a connection is compared with all of them.
constexpr size_t kMaxRules = 64;
constexpr std::string_view kSources[] = {"client", "own"};

StreamRule readRule(const ConfigValue& value, const char* effect, const char* remedy,
                    ConfigDiagnostics& out) {
  StreamRule rule;
  ConfigSection section(value, {"network", "ports"}, out);
  ConfigValue network = section.find("network"), ports = section.find("ports");
  rule.network = readPrefix(network, out);
  if (std::optional<PortRange> range = readPortRange(ports, out)) {
    rule.firstPort = range->first;
    rule.lastPort = range->last;
  }
  if (value.node->kind == ConfigNode::Kind::kMap && !network && !ports) out.add(value, effect, remedy);
  return rule;
}

std::vector<StreamRule> readRules(const ConfigValue& value, const char* effect, const char* remedy,
                                  ConfigDiagnostics& out) {
  std::vector<StreamRule> rules;
  for (const ConfigValue& item : readSequence(value, kMaxRules, out)) {
    if (item) rules.push_back(readRule(item, effect, remedy, out));
  }
  return rules;
}

void readLimits(const ConfigSection& section, StreamOptions& lane, ConfigDiagnostics& out) {
  ConfigValue stream = section.find("hold-limit"), peer = section.find("peer-hold-limit"),
              all = section.find("total-hold-limit");
  assign(lane.most, readNumber(section.find("max-per-peer"), 1, 1 << 18, out));
  assign(lane.newPerSecond, readNumber(section.find("new-per-peer"), 1, 100'000, out));
  assign(lane.mostCredit, readByteCount(stream, 64 << 10, StreamOptions::kCreditBound, out));
  assign(lane.heldBytes, readByteCount(peer, 1 << 20, uint64_t{1} << 34, out));
  assign(lane.allHeldBytes, readByteCount(all, 1 << 20, uint64_t{1} << 36, out));
  if (peer && lane.heldBytes > lane.allHeldBytes)
    out.add(peer, "is more than total-hold-limit", "raise total-hold-limit as well");
  if (stream && lane.mostCredit > lane.heldBytes)
    out.add(stream, "is more than peer-hold-limit", "raise peer-hold-limit as well");
}

}  // namespace

void readStreams(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  StreamsConfig& streams = config.streams;
  for (uint16_t port : {80, 443, 8080, 8443}) streams.match.push_back({std::nullopt, port, port});
  if (!value) return;
  ConfigSection section(value,
                        {"enabled", "match", "exclude", "source", "max-connections", "max-per-peer",
                         "new-per-peer", "hold-limit", "peer-hold-limit", "total-hold-limit"},
                        out);
  StreamOptions& lane = config.tunnel.streams;
  lane.on = true;  // a section that says nothing of it switches them on
  readSwitch(lane.on, section.find("enabled"), out);
  if (ConfigValue match = section.find("match")) {
    streams.match =
        readRules(match, "matches every connection", "add ports, network or both, such as {ports: 443}", out);
    if (match.node->kind == ConfigNode::Kind::kSequence && match.node->items.empty())
      out.add(match, "is empty", "name ports or networks, or set enabled: off");
  }
  streams.exclude = readRules(section.find("exclude"), "excludes every connection",
                              "add network or ports, or set enabled: off", out);
  if (std::optional<std::string> source = readChoice(section.find("source"), kSources, out))
    streams.source = *source == "own" ? StreamsConfig::Source::kOwn : StreamsConfig::Source::kClient;
  assign(streams.most, readNumber(section.find("max-connections"), 1, 1 << 20, out));
  readLimits(section, lane, out);
}

}  // namespace braid
