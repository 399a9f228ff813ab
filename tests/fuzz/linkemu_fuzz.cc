// The link emulator's configuration and requests from any text: accepted values must be in range,
// and a rejection must have a message.

#include <nlohmann/json.hpp>
#include <string>

#include "linkemu/config.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using braid::fuzz::require;

void checkOptions(const braid::LinkOptions& options) {
  require(options.rateBitsPerSecond >= 0 && options.rateBitsPerSecond <= 1e11,
          "a rate out of range");
  require(options.delay >= braid::Duration::zero() && options.delay <= std::chrono::minutes(1),
          "a delay out of range");
  require(options.loss >= 0 && options.loss <= 1, "a loss out of range");
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const braid::EmulatorConfig config = braid::parseConfig(text);
    require(!config.links.empty(), "no links");
    for (const braid::LinkConfig& link : config.links) {
      checkOptions(link.ab);
      checkOptions(link.ba);
    }
  } catch (const braid::ConfigError& error) {
    require(error.what()[0] != '\0', "refused without words");
  }
  const auto request = nlohmann::json::parse(text, nullptr, false);
  if (request.is_discarded()) return;
  braid::LinkOptions options;
  try {
    braid::applyParams(request, options, "link");
    checkOptions(options);
  } catch (const braid::ConfigError& error) {
    require(error.what()[0] != '\0', "refused without words");
  }
}
