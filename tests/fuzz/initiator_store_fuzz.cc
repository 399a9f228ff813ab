// The file of known initiators with any content: it must be rejected, or be unchanged after it is
// written again.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

#include "gateway/state/initiators.h"
#include "tests/fuzz/bounded.h"

namespace {

std::optional<std::vector<braid::StoredInitiator>> read(std::string_view text) {
  try {
    return braid::InitiatorStore::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  auto initiators = read({reinterpret_cast<const char*>(data), size});
  if (!initiators || read(braid::InitiatorStore::format(*initiators)) == initiators) return;
  std::fprintf(stderr, "initiators: it says something else when it is written again\n");
  std::abort();
}
