// What the table of settings is used for: looking up keys, reading sections, comparing
// configurations.

#include <algorithm>
#include <iterator>

#include "gateway/config/setting_values.h"

namespace braid {
namespace {

// The place of the value of a key like "tunnel.ack-shim.max-flows". When the key is not in the file
// any more: the place of the innermost section that is, or no place.
ConfigValue placeOf(const ConfigNode& tree, const std::string& key) {
  ConfigValue root{&tree, ""}, found = root;
  for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = key.find('.', at);
    ConfigValue child = childOf(found, std::string_view(key).substr(at, end - at));
    if (!child) break;
    found = child;
  }
  return {found.node == root.node ? nullptr : found.node, key};
}

}  // namespace

SettingValue SettingValue::withDefault(std::string text) && {
  fallback = std::move(text);
  return std::move(*this);
}

SettingValue SettingValue::required(std::string remedy) && {
  fallback = "required";
  missing = std::move(remedy);
  return std::move(*this);
}

std::string Setting::path() const {
  return (section.empty() ? "" : std::string(section) + ".") + std::string(key);
}

std::span<const Setting> settings() {
  static const std::vector<Setting> kSettings = [] {
    std::vector<Setting> all = setting::hostSettings();
    std::ranges::move(setting::trafficSettings(), std::back_inserter(all));
    return all;
  }();
  return kSettings;
}

std::vector<std::string_view> keysOf(std::string_view section) {
  std::vector<std::string_view> keys;
  for (const Setting& each : settings())
    if (each.section == section) keys.push_back(each.key);
  return keys;
}

std::string_view goneFor(std::string_view section, std::string_view key) {
  if (section.empty() && key == "workers") {
    return "remove it; more cores are for shards: several daemons, each with a part of the peers "
           "(docs/operations.md)";
  }
  return {};
}

std::string_view renamedTo(std::string_view section, std::string_view key) {
  for (const Setting& each : settings())
    if (each.section == section && !key.empty() && each.former == key) return each.key;
  return {};
}

void readSection(const ConfigValue& value, const SettingTarget& target, ConfigDiagnostics& out) {
  if (!value) return;
  checkKeys(value, out);
  std::string path = sectionOf(value);
  for (const Setting& each : settings()) {
    if (each.section != path) continue;
    const std::string& missing = each.value.missing;
    ConfigValue found =
        missing.empty() ? childOf(value, each.key) : requiredChild(value, each.key, missing, out);
    if (each.value.read) each.value.read(found, target, out);
  }
}

ConfigErrors needsRestart(const Config& before, const Config& after, const ConfigNode& tree,
                          size_t bufferSize) {
  ConfigDiagnostics out(after.path);
  for (const Setting& each : settings()) {
    if (each.change != SettingChange::kRestart) continue;
    if (each.value.show(before) != each.value.show(after))
      out.add(placeOf(tree, each.path()), "a changed value needs a restart",
              "set it back, or restart the daemon");
  }
  if (after.device.mtu + kTaggedEthernetHeader > bufferSize) {
    std::string most = std::to_string(bufferSize - kTaggedEthernetHeader);
    out.add(
        placeOf(tree, "device.mtu"),
        "packet buffers hold packets of up to " + most + " bytes: a larger value needs a restart",
        "use " + most + " or less, or restart the daemon");
  }
  return out.take();
}

}  // namespace braid
