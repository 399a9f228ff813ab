// The configuration reader on any text: no exception, no crash, and every mistake has a reason and a remedy.

#include <string>

#include "gateway/config/config.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

using braid::fuzz::require;

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  using namespace braid;
  LoadOptions options;
  options.checkIdentity = false;  // reads no other files
  ConfigResult result = parseConfig({reinterpret_cast<const char*>(data), size}, "fuzz.yaml", options);
  if (const auto* errors = std::get_if<ConfigErrors>(&result)) {
    require(!errors->empty(), "refused without a reason");
    for (const ConfigError& error : *errors) {
      require(!error.problem.empty() && !error.remedy.empty(), "an error without words");
      require(error.line <= size + 1 && error.column <= size + 2, "an error outside of the text");
    }
  } else {
    const auto& config = std::get<Config>(result);
    require(!config.peers.empty(), "a configuration without peers");
    require(!config.uplinks.empty() || !config.listen.empty(), "a configuration without a way out or in");
    for (const UplinkConfig& uplink : config.uplinks) {
      require(uplink.subflows >= 1 && uplink.subflows <= 8, "subflows out of range");
      require(!uplink.interface.empty() && uplink.interface.size() < 16, "interface name too long");
    }
  }
}
