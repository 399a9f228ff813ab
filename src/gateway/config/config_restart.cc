#include "gateway/config/config_restart.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "gateway/config/config_reader.h"

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
  auto fixed = [&](const auto& was, const auto& is, const char* key) {
    if (was != is)
      out.add(placeOf(tree, key), "a changed value needs a restart",
              "set it back, or restart the daemon");
  };
  fixed(before.identity.key, after.identity.key, "identity.key");
  fixed(before.identity.certificate, after.identity.certificate, "identity.certificate");
  fixed(before.device.name, after.device.name, "device.name");
  fixed(before.device.bridge, after.device.bridge, "device.bridge");
  fixed(before.tunnel.mode, after.tunnel.mode, "device.mode");
  fixed(before.offloads.device, after.offloads.device, "offloads.device");
  fixed(before.offloads.sockets, after.offloads.sockets, "offloads.sockets");
  if (after.device.mtu + kTaggedEthernetHeader > bufferSize) {
    std::string most = std::to_string(bufferSize - kTaggedEthernetHeader);
    out.add(
        placeOf(tree, "device.mtu"),
        "packet buffers hold packets of up to " + most + " bytes: a larger value needs a restart",
        "use " + most + " or less, or restart the daemon");
  }
  fixed(before.tunnel.outerMtu, after.tunnel.outerMtu, "tunnel.mtu");
  fixed(before.tunnel.maxOuterMtu, after.tunnel.maxOuterMtu, "tunnel.max-mtu");
  fixed(before.tunnel.maxFlows, after.tunnel.maxFlows, "tunnel.max-flows");
  fixed(before.tunnel.shim.maxFlows, after.tunnel.shim.maxFlows, "tunnel.ack-shim.max-flows");
  fixed(before.tunnel.decodeBuffer, after.tunnel.decodeBuffer, "recovery.decode-buffer");
  fixed(before.control.socket, after.control.socket, "control.socket");
  fixed(before.control.group, after.control.group, "control.group");
  fixed(before.cipher, after.cipher, "tunnel.cipher");
  fixed(before.tunnel.streams.on, after.tunnel.streams.on, "streams.enabled");
  fixed(before.tunnel.streams.allHeldBytes, after.tunnel.streams.allHeldBytes,
        "streams.total-hold-limit");
  fixed(before.state, after.state, "state");
  fixed(before.peersFolder, after.peersFolder, "peers-folder");
  return out.take();
}

}  // namespace braid
