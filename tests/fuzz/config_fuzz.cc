// The configuration reader on any text: no exception, no crash, and every error has a reason and a
// remedy. Text after a 0 byte is a configuration fragment.

#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/config.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

using braid::fuzz::require;

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  using namespace braid;
  LoadOptions options;
  options.checkIdentity = false;  // reads no other files
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<ConfigText> fragments;
  size_t end = text.find('\0');
  for (size_t at = end; at != std::string_view::npos && fragments.size() < 8;) {
    size_t next = text.find('\0', at + 1);
    std::string name = "peers.d/" + std::to_string(fragments.size()) + ".yaml";
    fragments.push_back(
        {name,
         std::string(text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1))});
    at = next;
  }
  ConfigResult result = parseConfig(text.substr(0, end), "fuzz.yaml", options, fragments);
  if (const auto* errors = std::get_if<ConfigErrors>(&result)) {
    require(!errors->empty(), "refused without a reason");
    for (const ConfigError& error : *errors) {
      require(!error.problem.empty() && !error.remedy.empty(), "an error without words");
      require(error.line <= size + 1 && error.column <= size + 2, "an error outside of the text");
    }
  } else {
    const auto& config = std::get<Config>(result);
    require(!config.peers.empty() || !config.listen.empty(),
            "a configuration without peers that waits for none");
    require(!config.uplinks.empty() || !config.listen.empty(),
            "a configuration without a way out or in");
    for (const UplinkConfig& uplink : config.uplinks) {
      require(uplink.subflows >= 1 && uplink.subflows <= 8, "subflows out of range");
      require(uplink.interface.size() < 128, "interface name too long");
      require(uplink.interface.empty() + uplink.mac.empty() + uplink.path.empty() == 2,
              "an interface that is named by none or several");
    }
  }
}
