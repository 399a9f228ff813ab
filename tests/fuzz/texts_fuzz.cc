// The small values of configuration and command line (addresses, prefixes, endpoints, pins, times,
// sizes, rates): an accepted value must be unchanged after it is written and read again.
//
// The lines of the input are prefixes, too: the table of prefixes must find what a search through
// all of them finds. A line with a number is a time at which a period of a meter begins.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "gateway/config/units.h"
#include "inet/addresses.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
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

// The last of the prefixes with the most bits among those that contain the address.
std::optional<size_t> longestOf(const std::vector<Prefix>& prefixes, const Address& address) {
  std::optional<size_t> best;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (!prefixes[i].contains(address)) continue;
    if (!best || prefixes[i].length > prefixes[*best].length) best = i;
  }
  return best;
}

void checkSpecial(const Prefix& network) {
  static const SpecialAddresses special;
  const std::optional<SpecialRange> range = special.find(network.address);
  if (range) CHECK(range->length <= network.address.bits());
  // What embeds an address is in no range of the table itself.
  const bool isWhole = network.length == network.address.bits();
  if (isWhole && special.overlap(network)) CHECK(range.has_value());
  if (network.isEverything()) CHECK(network.length <= globalUnicast().length + 1);
}

void checkTable(const std::vector<Prefix>& prefixes) {
  PrefixTable table;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    const bool isNew = std::find(prefixes.begin(), prefixes.begin() + static_cast<ptrdiff_t>(i),
                                 prefixes[i]) == prefixes.begin() + static_cast<ptrdiff_t>(i);
    CHECK(table.insert(prefixes[i], i) == isNew);
  }
  for (const Prefix& each : prefixes) {
    Address last = each.address;  // the last address of the prefix
    for (unsigned bit = each.length; bit < last.bits(); ++bit)
      last.bytes[bit / 8] |= static_cast<uint8_t>(0x80 >> bit % 8);
    for (const Address& address : {each.address, last})
      CHECK(table.find(address) == longestOf(prefixes, address));
    CHECK(each.contains(last));
  }
  table.clear();
  for (const Prefix& each : prefixes) CHECK(!table.find(each.address));
}

void checkPeriods(uint64_t number) {
  constexpr uint64_t kLatest = 253402300799;  // the last second of the year 9999
  constexpr std::time_t kLongest = 33 * 86400;
  const auto now = static_cast<std::time_t>(number % kLatest);
  const auto hour = static_cast<unsigned>(number % 24);
  for (const MeterPeriod& period : {MeterPeriod{MeterPeriod::Unit::kDay, 1, hour},
                                    {MeterPeriod::Unit::kWeek, hour % 7, hour},
                                    {MeterPeriod::Unit::kMonth, hour % 4 + 28, hour}}) {
    const std::time_t next = nextPeriod(period, now);
    CHECK(next > now && next - now <= kLongest);
  }
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

  constexpr size_t kMost = 64;
  std::vector<Prefix> prefixes;
  for (std::string_view rest = text; !rest.empty() && prefixes.size() < kMost;) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (const std::optional<uint64_t> number = parseNumber(line)) checkPeriods(*number);
    if (const std::optional<Prefix> prefix = Prefix::parse(line)) {
      checkSpecial(*prefix);
      prefixes.push_back(*prefix);
    }
  }
  checkTable(prefixes);
}
