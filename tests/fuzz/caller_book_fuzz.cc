// The file of the peers to call back with anything in it: it is refused, or says the same when it is written again.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

#include "gateway/caller_book.h"
#include "tests/fuzz/bounded.h"

namespace {

std::optional<std::vector<braid::KeptCaller>> read(std::string_view text) {
  try {
    return braid::CallerBook::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  auto callers = read({reinterpret_cast<const char*>(data), size});
  if (!callers || read(braid::CallerBook::format(*callers)) == callers) return;
  std::fprintf(stderr, "caller book: it says something else when it is written again\n");
  std::abort();
}
