#include "web/views.h"

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "base/drop.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid {
namespace {

using Json = nlohmann::json;

/// An object that has figures, and the labels that identify it.
struct Labelled {
  const Json* object;
  std::string labels;  ///< "" or `{peer="hub"}`
};
using All = std::vector<Labelled>;

std::string labelValue(const std::string& value) {
  std::string out = "\"";
  for (char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string labelled(const std::vector<std::pair<const char*, std::string>>& labels) {
  std::string out;
  for (const auto& [name, value] : labels)
    out.append(out.empty() ? "{" : ",").append(name).append("=").append(labelValue(value));
  return out.empty() ? out : out + "}";
}

void putNumber(std::string& out, double value) {
  char text[32];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

// Factor from the table's unit to Prometheus's unit, which is the SI unit without a prefix.
double scaleOf(const FieldInfo& info) {
  return info.unit == FieldUnit::kMilliseconds ? 1e-3 : 1;
}

std::string helpOf(const FieldInfo& info) {
  std::string help = info.help;
  for (size_t at = 0; (at = help.find('`', at)) != std::string::npos;) help.erase(at, 1);
  return help;
}

void putHead(std::string& out, const std::string& name, const std::string& help, const char* type) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

// Writes one figure of all objects that have it.
void putFigure(std::string& out, const std::string& scope, const FieldInfo& info, const All& all) {
  std::string name = metricName(scope, info);
  bool begun = false;
  for (const Labelled& each : all) {
    const Json& value = fieldOf(*each.object, info.name);
    if (!value.is_number() && !value.is_boolean()) continue;  // unknown, or unlimited
    if (!std::exchange(begun, true))
      putHead(out, name, helpOf(info), info.kind == FieldKind::kCounter ? "counter" : "gauge");
    out.append(name).append(each.labels).append(" ");
    if (value.is_number_integer() && scaleOf(info) == 1) {
      out += value.dump();  // with all its digits
    } else {
      putNumber(out, value.is_boolean() ? value.get<bool>() : value.get<double>() * scaleOf(info));
    }
    out += '\n';
  }
}

template <HasFields T>
void putAll(std::string& out, const std::string& scope, const All& all) {
  forEachField(T{}, [&](const FieldInfo& info, const auto&) {
    if (info.kind == FieldKind::kText || info.kind == FieldKind::kRemark ||
        info.kind == FieldKind::kObject)
      return;
    putFigure(out, scope, info, all);
  });
}

void putOne(std::string& out, const std::string& name, const std::string& help, const char* type,
            const std::vector<std::pair<std::string, double>>& samples) {
  if (samples.empty()) return;
  putHead(out, name, help, type);
  for (const auto& [labels, value] : samples) {
    out.append(name).append(labels).append(" ");
    putNumber(out, value);
    out += '\n';
  }
}

// Writes 1 for each path, with its state as a label.
void putStates(std::string& out, const All& paths) {
  std::vector<std::pair<std::string, double>> samples;
  for (const Labelled& path : paths) {
    std::string state = wordOf(*path.object, kKeyOf<&SubflowStatus::state>);
    samples.emplace_back(
        path.labels.substr(0, path.labels.size() - 1) + ",state=" + labelValue(state) + "}", 1);
  }
  putOne(out, "braid_path_state", "1: the path is in the state of the label", "gauge", samples);
}

void putDrops(std::string& out, const Json& drops) {
  std::vector<std::pair<std::string, double>> samples;
  for (size_t i = 0; i < kDropCount; ++i) {
    const Json& count = fieldOf(drops, kDrops[i].info.name);
    if (count.is_number())
      samples.emplace_back(labelled({{"cause", kDrops[i].info.name}}), count.get<double>());
  }
  putOne(out, "braid_drops_total", "packets and datagrams dropped, by cause", "counter", samples);
}

void putActuators(std::string& out, const Json& shim) {
  All all;
  for (const Json& each : listOf(shim, "actuators"))
    all.push_back({&each, labelled({{"actuator", wordOf(each, "name")}})});
  putAll<ActuatorCounts>(out, "ack_shim_actuator", all);
}

}  // namespace

std::string metricName(const std::string& scope, const FieldInfo& info) {
  std::string name = info.name;
  // The metric endings for the tables' units; "_count" is reserved for histograms.
  constexpr std::pair<std::string_view, std::string_view> kEnds[] = {
      {"_bytes_per_s", "_bytes_per_second"},
      {"_unix_s", "_timestamp_seconds"},
      {"_ms", "_seconds"},
      {"_s", "_seconds"},
      {"_count", "s"}};
  for (const auto& [end, other] : kEnds) {
    if (!name.ends_with(end)) continue;
    name.replace(name.size() - end.size(), end.size(), other);
    break;
  }
  return "braid_" + scope + (scope.empty() ? "" : "_") + name +
         (info.kind == FieldKind::kCounter ? "_total" : "");
}

std::string metricsText(const DaemonAnswer& status) {
  std::string out;
  bool isUp = status.problem.empty() && status.value.is_object();
  putOne(out, "braid_up", "1: the daemon answers at its control socket", "gauge",
         {{"", isUp ? 1 : 0}});
  if (!isUp) return out;
  const Json& all = status.value;
  const Json& gateway = fieldOf(all, "gateway");
  putOne(out, "braid_build_info", "version and mode of the daemon", "gauge",
         {{labelled({{"version", wordOf(gateway, "version")}, {"mode", wordOf(gateway, "mode")}}),
           1}});
  putAll<GatewayStatus>(out, "gateway", {{&gateway, ""}});
  putAll<TunnelStatus>(out, "gateway", {{&all, ""}});
  putDrops(out, fieldOf(all, "drops"));
  putAll<HostDrops>(out, "host_drops", {{&fieldOf(all, "host_drops"), ""}});
  putAll<HostTraffic>(out, "host", {{&fieldOf(all, "host_traffic"), ""}});
  putAll<StreamFigures>(out, "stream_connections", {{&fieldOf(all, "streams"), ""}});
  putAll<ShimStatus>(out, "ack_shim", {{&fieldOf(all, "ack_shim"), ""}});
  putActuators(out, fieldOf(all, "ack_shim"));

  All uplinks, meters, carried, peers, paths;
  for (const Json& uplink : listOf(gateway, "uplinks")) {
    uplinks.push_back({&uplink, labelled({{"uplink", wordOf(uplink, "name")}})});
    const Json& meter = fieldOf(uplink, "metered");
    if (meter.is_object()) meters.push_back({&meter, uplinks.back().labels});
    const Json& counts = fieldOf(uplink, kKeyOf<&UplinkStatus::carried>);
    if (counts.is_object()) carried.push_back({&counts, uplinks.back().labels});
  }
  for (const Json& peer : listOf(all, "peers")) {
    std::string name = wordOf(peer, "name");
    peers.push_back({&peer, labelled({{"peer", name}})});
    for (const Json& path : listOf(peer, "subflows")) {
      paths.push_back(
          {&path,
           labelled({{"peer", name}, {"path", wordOf(path, "path")}, {"id", wordOf(path, "id")}})});
    }
  }
  putAll<UplinkStatus>(out, "uplink", uplinks);
  putAll<MeterPeriodStatus>(out, "uplink_meter", meters);
  putAll<CarriedStatus>(out, "uplink_carried", carried);
  putAll<PeerStatus>(out, "peer", peers);
  putStates(out, paths);
  putAll<SubflowStatus>(out, "path", paths);
  return out;
}

}  // namespace braid
