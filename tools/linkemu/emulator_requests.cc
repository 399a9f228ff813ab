// The requests of the control socket.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "linkemu/emulator.h"

namespace braid {

namespace {

using nlohmann::json;

json toJson(const LinkCount& count) {
  return {{"packets", count.packets}, {"bytes", count.bytes}};
}

json toJson(const LinkStats& s) {
  return {{"in", toJson(s.in)},
          {"delivered", toJson(s.delivered)},
          {"dropped",
           {{"queue", s.dropQueue.packets},
            {"loss", s.dropLoss.packets},
            {"burst", s.dropBurst.packets},
            {"exact", s.dropExact.packets},
            {"down", s.dropDown.packets},
            {"mtu", s.dropMtu.packets},
            {"policer", s.dropPolicer.packets},
            {"ecn", s.dropEcn.packets}}},
          {"marked", s.marked},
          {"bleached", s.bleached},
          {"duplicated", s.duplicated},
          {"corrupted", s.corrupted},
          {"reordered", s.reordered},
          {"inside", s.inside},
          {"queue_bytes", s.queueBytes},
          {"queue_bytes_max", s.queueBytesMax},
          {"queue_delay_max_ms", toMilliseconds(s.queueDelayMax)}};
}

/// A string member, or ConfigError.
std::string stringMember(const json& request, const char* key) {
  auto member = request.find(key);
  if (member == request.end() || !member->is_string()) {
    throw ConfigError(std::string("request, ") + key + ": must be a string");
  }
  return member->get<std::string>();
}

void allowOnly(const json& request, std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : request.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw ConfigError("request: unknown key \"" + key + "\"");
    }
  }
}

}  // namespace

std::string Emulator::handle(const std::string& text) {
  // Errors quote the client's input, which may not be valid UTF-8.
  constexpr auto kReplace = json::error_handler_t::replace;
  try {
    json request = json::parse(text);
    if (!request.is_object()) throw ConfigError("request: must be an object");
    std::string command = stringMember(request, "cmd");
    if (command == "set") {
      allowOnly(request, {"cmd", "link", "direction", "params"});
      if (!request.contains("params")) throw ConfigError("request, params: is missing");
      set(stringMember(request, "link"), stringMember(request, "direction"), request["params"]);
      return R"({"ok":true})";
    }
    allowOnly(request, {"cmd"});
    if (command == "stats") return stats().dump(-1, ' ', false, kReplace);
    if (command != "quit")
      throw ConfigError("request, cmd: must be \"set\", \"stats\" or \"quit\"");
    quitting_ = true;
    return R"({"ok":true})";
  } catch (const json::exception& e) {
    return json{{"error", std::string("not JSON: ") + e.what()}}.dump(-1, ' ', false, kReplace);
  } catch (const ConfigError& e) {
    return json{{"error", e.what()}}.dump(-1, ' ', false, kReplace);
  }
}

void Emulator::set(const std::string& link, const std::string& direction, const json& params) {
  if (direction != "ab" && direction != "ba" && direction != "both") {
    throw ConfigError("request, direction: must be \"ab\", \"ba\" or \"both\"");
  }
  std::vector<std::pair<Direction*, LinkOptions>> changes;
  for (auto& d : directions_) {
    const char* name = d->forward ? "ab" : "ba";
    if (d->name != link || (direction != "both" && direction != name)) continue;
    changes.emplace_back(d.get(), d->link.options());
    applyParams(params, changes.back().second, "link " + link + ", " + name);
  }
  if (changes.empty()) throw ConfigError("link " + link + ": there is no such link");
  Time now = monotonicNow();
  for (auto& [d, options] : changes) {
    d->link.setOptions(std::move(options), now);
    if (params.contains("drop")) d->link.restartDropCount();
    deliverDue(*d, now);
  }
  armTimer(now);
}

json Emulator::stats() {
  json links = json::object();
  Time now = monotonicNow();
  for (auto& d : directions_) {
    json& out = links[d->name][d->forward ? "ab" : "ba"];
    out = toJson(d->link.stats(now));
    out["no_buffer"] = d->noBuffer;
    out["write_errors"] = d->writeErrors;
  }
  return {{"links", links}};
}

}  // namespace braid
