// The state file of metered uplinks with any content: it must be rejected, or be unchanged after it
// is written again.

#include <exception>
#include <optional>
#include <string_view>

#include "gateway/state/meters.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

std::optional<braid::MeterStore::Entries> read(std::string_view text) {
  try {
    return braid::MeterStore::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  auto entries = read({reinterpret_cast<const char*>(data), size});
  if (entries) CHECK(read(braid::MeterStore::format(*entries)) == entries);
}
