// The state file of metered uplinks with anything in it: it is refused, or says the same when it is written again.

#include <exception>
#include <optional>
#include <string_view>

#include "gateway/meter_book.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

std::optional<braid::MeterBook::Entries> read(std::string_view text) {
  try {
    return braid::MeterBook::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  auto entries = read({reinterpret_cast<const char*>(data), size});
  if (entries) CHECK(read(braid::MeterBook::format(*entries)) == entries);
}
