// The small values of configuration and command line (addresses, prefixes, endpoints, pins, times,
// sizes, rates): an accepted value must be unchanged after it is written and read again.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "gateway/config/units.h"
#include "inet/addresses.h"
#include "tests/fuzz/bounded.h"
#include "tunnel/wire/handshake_envelope.h"

namespace {

using namespace braid;

template <typename Parse, typename Format>
void check(std::string_view text, Parse&& parse, Format&& format) {
  const auto value = parse(text);
  if (!value || parse(format(*value)) == value) return;
  std::fprintf(stderr, "texts: \"%s\" is read as something else\n", format(*value).c_str());
  std::abort();
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto toString = [](const auto& value) { return value.toString(); };
  check(text, Address::parse, toString);
  check(text, Endpoint::parse, toString);
  check(text, Prefix::parse, toString);
  check(text, parsePin, formatPin);
  check(text, parseDuration, durationText);
  check(text, parseByteCount, byteCountText);
  check(text, parseBitRate, bitRateText);
  check(text, parseNumber, [](uint64_t number) { return std::to_string(number); });
}
