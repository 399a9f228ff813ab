// The output of braidctl for any JSON that a daemon may answer: it must not contain terminal
// control sequences.

#include <nlohmann/json.hpp>
#include <string>

#include "ctl/views/views.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  const auto answer = nlohmann::json::parse(data, data + size, nullptr, false);
  if (!answer.is_object()) return;  // ask() returns only such values
  for (auto* view : {braid::statusText, braid::peersText, braid::pathsText, braid::recoveryText,
                     braid::flowsText}) {
    for (const char c : view(answer)) CHECK(c == '\n' || static_cast<unsigned char>(c) >= ' ');
  }
}
