#include "linkemu/config.h"

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace braid {

namespace {

using nlohmann::json;

constexpr double kMaxMbit = 1e5;                   // 100 Gbit/s
constexpr double kMinMbit = 1e-3;                  // 1 kbit/s
constexpr double kMaxMs = 60'000;                  // a minute
constexpr double kMaxSeconds = 86'400;             // a day per step of a trace
constexpr uint64_t kMaxQueue = uint64_t{1} << 30;  // 1 GiB
constexpr uint64_t kMaxPacket = 65'535;            // an IP packet
constexpr size_t kMaxList = 100'000;               // entries of drop and trace

/// A value and its place for error messages.
struct Value {
  const json& value;
  const std::string& where;

  [[noreturn]] void fail(const std::string& what) const { throw ConfigError(where + ": " + what); }
  double number(double low, double high) const {
    if (!value.is_number()) fail("must be a number");
    double v = value.get<double>();
    if (!(v >= low && v <= high))
      fail("must be in [" + json(low).dump() + ", " + json(high).dump() + "]");
    return v;
  }
  uint64_t integer(uint64_t low, uint64_t high) const {
    // JSON has only one kind of number, so 3.0 also counts as an integer.
    bool whole = value.is_number_unsigned() ||
                 (value.is_number_float() && value == std::floor(value.get<double>()));
    std::string range =
        "must be an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]";
    // 2^64 is larger than every uint64_t, but equals the largest one converted to double.
    bool beyond = value.is_number_float() && value.get<double>() >= 0x1p64;
    if (!whole || beyond || value.get<double>() < 0 ||
        value.get<double>() > static_cast<double>(high))
      fail(range);
    uint64_t v = value.get<uint64_t>();
    if (v < low || v > high) fail(range);
    return v;
  }
  bool boolean() const {
    if (!value.is_boolean()) fail("must be true or false");
    return value.get<bool>();
  }
  std::string string() const {
    if (!value.is_string()) fail("must be a string");
    return value.get<std::string>();
  }
  const json& array(size_t most) const {
    if (!value.is_array()) fail("must be an array");
    if (value.size() > most) fail("must have at most " + std::to_string(most) + " entries");
    return value;
  }
  double probability() const { return number(0, 1); }
  Duration milliseconds() const { return fromSeconds(number(0, kMaxMs) / 1e3); }
  double bitsPerSecond() const {
    double mbit = number(0, kMaxMbit);
    if (mbit > 0 && mbit < kMinMbit) fail("must be 0 or at least " + json(kMinMbit).dump());
    return mbit * 1e6;
  }
};

using Setters = std::map<std::string, std::function<void(const Value&)>>;

/// Calls the setter of each member of an object. A member without a setter is an error.
void readObject(const json& object, const std::string& where, const Setters& setters) {
  if (!object.is_object()) throw ConfigError(where + ": must be an object");
  for (const auto& [key, value] : object.items()) {
    auto setter = setters.find(key);
    if (setter == setters.end()) throw ConfigError(where + ": unknown key \"" + key + "\"");
    std::string place = where + ", " + key;
    setter->second({value, place});
  }
}

GilbertElliott readBursts(const Value& v, GilbertElliott bursts) {
  readObject(v.value, v.where,
             {{"good_to_bad", [&](const Value& p) { bursts.goodToBad = p.probability(); }},
              {"bad_to_good", [&](const Value& p) { bursts.badToGood = p.probability(); }},
              {"loss_good", [&](const Value& p) { bursts.lossGood = p.probability(); }},
              {"loss_bad", [&](const Value& p) { bursts.lossBad = p.probability(); }}});
  return bursts;
}

Policer readPolicer(const Value& v, Policer policer) {
  readObject(
      v.value, v.where,
      {{"rate_mbit", [&](const Value& r) { policer.bitsPerSecond = r.bitsPerSecond(); }},
       {"burst_bytes", [&](const Value& b) { policer.burstBytes = b.integer(1, kMaxQueue); }}});
  return policer;
}

std::vector<uint64_t> readDrops(const Value& v) {
  std::vector<uint64_t> drops;
  for (const json& n : v.array(kMaxList))
    drops.push_back(Value{n, v.where}.integer(1, uint64_t{1} << 53));
  return drops;
}

std::vector<RateStep> readTrace(const Value& v) {
  std::vector<RateStep> trace;
  bool sends = false;
  for (const json& step : v.array(kMaxList)) {
    if (!step.is_array() || step.size() != 2) v.fail("each step must be [seconds, rate_mbit]");
    RateStep s;
    s.duration = fromSeconds(Value{step[0], v.where}.number(1e-6, kMaxSeconds));
    s.bitsPerSecond = Value{step[1], v.where}.bitsPerSecond();
    sends |= s.bitsPerSecond > 0;
    trace.push_back(s);
  }
  if (!trace.empty() && !sends) v.fail("some step must have a rate above 0");
  return trace;
}

EndConfig readEnd(const Value& v) {
  EndConfig end;
  readObject(v.value, v.where,
             {{"netns", [&](const Value& s) { end.netns = s.string(); }},
              {"device", [&](const Value& s) { end.device = s.string(); }}});
  if (end.netns.find('/') != std::string::npos || end.netns == "." || end.netns == "..") {
    v.fail("netns must be a name below /run/netns");
  }
  bool badDevice = end.device.empty() || end.device.size() > 15 || end.device == "." ||
                   end.device == ".." || end.device.find_first_of("/:% \t\n") != std::string::npos;
  if (badDevice) v.fail("device must be an interface name of 1 to 15 characters");
  return end;
}

LinkConfig readLink(const json& object, size_t index) {
  LinkConfig link;
  std::string where = "link " + std::to_string(index + 1);
  if (object.is_object() && object.contains("name"))
    link.name = Value{object["name"], where}.string();
  if (link.name.empty()) throw ConfigError(where + ": needs a name");
  where = "link " + link.name;
  readObject(object, where,
             {{"name", [](const Value&) {}},
              {"a", [&](const Value& v) { link.a = readEnd(v); }},
              {"b", [&](const Value& v) { link.b = readEnd(v); }},
              {"ab", [&](const Value& v) { applyParams(v.value, link.ab, v.where); }},
              {"ba", [&](const Value& v) { applyParams(v.value, link.ba, v.where); }},
              {"device_mtu", [&](const Value& v) { link.deviceMtu = v.integer(68, 9216); }}});
  if (link.a.device.empty()) throw ConfigError(where + ": needs an end \"a\"");
  if (link.b.device.empty()) throw ConfigError(where + ": needs an end \"b\"");
  return link;
}

void checkUnique(const std::vector<LinkConfig>& links) {
  std::set<std::string> names;
  std::set<std::pair<std::string, std::string>> devices;
  for (const LinkConfig& link : links) {
    if (!names.insert(link.name).second)
      throw ConfigError("link " + link.name + ": name is used twice");
    for (const EndConfig* end : {&link.a, &link.b}) {
      if (devices.insert({end->netns, end->device}).second) continue;
      throw ConfigError("link " + link.name + ": device \"" + end->device +
                        "\" is used twice in one netns");
    }
  }
}

EcnFault readEcnFault(const Value& v) {
  static const std::map<std::string, EcnFault> kFaults{{"none", EcnFault::kNone},
                                                       {"bleach", EcnFault::kBleach},
                                                       {"mangle", EcnFault::kMangle},
                                                       {"drop", EcnFault::kDrop}};
  auto found = kFaults.find(v.string());
  if (found == kFaults.end()) v.fail("must be none, bleach, mangle or drop");
  return found->second;
}

}  // namespace

EmulatorConfig parseConfig(const std::string& text) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& e) {
    throw ConfigError(std::string("not JSON: ") + e.what());
  }
  EmulatorConfig config;
  auto readLinks = [&](const Value& v) {
    for (const json& link : v.array(kMaxList))
      config.links.push_back(readLink(link, config.links.size()));
  };
  readObject(root, "configuration",
             {{"seed", [&](const Value& v) { config.seed = v.integer(0, UINT64_MAX); }},
              {"control", [&](const Value& v) { config.control = v.string(); }},
              {"realtime", [&](const Value& v) { config.realtime = v.boolean(); }},
              {"links", readLinks}});
  if (config.links.empty()) throw ConfigError("configuration, links: needs at least one link");
  if (config.control.size() > 107)
    throw ConfigError("configuration, control: path is longer than 107 bytes");
  checkUnique(config.links);
  return config;
}

void applyParams(const json& params, LinkOptions& options, const std::string& where) {
  LinkOptions o = options;
  readObject(params, where,
             {{"rate_mbit", [&](const Value& v) { o.rateBitsPerSecond = v.bitsPerSecond(); }},
              {"trace", [&](const Value& v) { o.trace = readTrace(v); }},
              {"delay_ms", [&](const Value& v) { o.delay = v.milliseconds(); }},
              {"jitter_ms", [&](const Value& v) { o.jitter = v.milliseconds(); }},
              {"queue_bytes", [&](const Value& v) { o.queueBytes = v.integer(0, kMaxQueue); }},
              {"ecn_threshold_bytes",
               [&](const Value& v) { o.ecnThresholdBytes = v.integer(0, kMaxQueue); }},
              {"ecn_fault", [&](const Value& v) { o.ecnFault = readEcnFault(v); }},
              {"loss", [&](const Value& v) { o.loss = v.probability(); }},
              {"ge", [&](const Value& v) { o.bursts = readBursts(v, o.bursts); }},
              {"drop", [&](const Value& v) { o.dropPackets = readDrops(v); }},
              {"mtu", [&](const Value& v) { o.mtu = v.integer(0, kMaxPacket); }},
              {"policer", [&](const Value& v) { o.policer = readPolicer(v, o.policer); }},
              {"duplicate", [&](const Value& v) { o.duplicate = v.probability(); }},
              {"corrupt", [&](const Value& v) { o.corrupt = v.probability(); }},
              {"reorder", [&](const Value& v) { o.reorder = v.probability(); }},
              {"reorder_delay_ms", [&](const Value& v) { o.reorderDelay = v.milliseconds(); }},
              {"down", [&](const Value& v) { o.down = v.boolean(); }}});
  options = std::move(o);
}

}  // namespace braid
