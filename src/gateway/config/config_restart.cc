#include "gateway/config/config_restart.h"

namespace braid {

std::vector<std::string> needsRestart(const Config& before, const Config& after, size_t bufferSize) {
  std::vector<std::string> out;
  auto fixed = [&](bool same, const char* key) {
    if (!same) out.push_back(std::string(key) + ": a changed value needs a restart");
  };
  fixed(before.identity.key == after.identity.key, "identity.key");
  fixed(before.identity.certificate == after.identity.certificate, "identity.certificate");
  fixed(before.device.name == after.device.name, "device.name");
  fixed(before.device.bridge == after.device.bridge, "device.bridge");
  fixed(before.tunnel.mode == after.tunnel.mode, "device.mode");
  fixed(before.offloads == after.offloads, "offloads");
  fixed(before.workers == after.workers, "workers");
  if (after.device.mtu + kTaggedEthernetHeader > bufferSize) {
    out.push_back("device.mtu: packet buffers hold packets of up to " +
                  std::to_string(bufferSize - kTaggedEthernetHeader) +
                  " bytes: a larger value needs a restart");
  }
  fixed(before.tunnel.outerMtu == after.tunnel.outerMtu &&
            before.tunnel.maxOuterMtu == after.tunnel.maxOuterMtu,
        "tunnel.mtu");
  fixed(before.tunnel.maxFlows == after.tunnel.maxFlows, "tunnel.max-flows");
  fixed(before.tunnel.shim.maxFlows == after.tunnel.shim.maxFlows, "tunnel.ack-shim.max-flows");
  fixed(before.tunnel.decodeBuffer == after.tunnel.decodeBuffer, "recovery.decode-buffer");
  fixed(before.control.socket == after.control.socket && before.control.group == after.control.group,
        "control");
  fixed(before.cipher == after.cipher, "tunnel.cipher");
  const StreamOptions &lane = before.tunnel.streams, &nextLane = after.tunnel.streams;
  fixed(lane.on == nextLane.on, "streams.enabled");
  fixed(lane.allHeldBytes == nextLane.allHeldBytes, "streams.total-hold-limit");
  fixed(before.state == after.state, "state");
  fixed(before.peersFolder == after.peersFolder, "peers-folder");
  return out;
}

}  // namespace braid
