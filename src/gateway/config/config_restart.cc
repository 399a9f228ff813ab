#include "gateway/config/config_restart.h"

#include <string>
#include <string_view>

#include "gateway/config/settings.h"

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
