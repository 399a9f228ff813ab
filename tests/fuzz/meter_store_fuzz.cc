// The state file of the uplinks' counts with any content: it must be rejected, or be unchanged
// after it is written again. Whatever the file and its copies hold, the store must open, count, and
// have its counts again after a restart.
//
// Input: the file, its `.next` copy, its `.old` copy and a script, with a 0 byte between them; what
// is missing at the end is not there. A step of the script has 4 bytes: the action, the count, and
// a number of 16 bits.

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "gateway/state/meter_store.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/temporary_folder.h"

namespace {

using namespace braid;

constexpr std::array<const char*, 4> kNames{"wifi", "lte today", "lte month", "a \"name\""};
constexpr size_t kStep = 4;

std::optional<MeterStore::Entries> read(std::string_view text) {
  try {
    return MeterStore::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// The parts of the input as files of a folder, which stays the same over all inputs.
class Files {
 public:
  Files() {
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
    spdlog::set_level(spdlog::level::off);
  }
  std::string begin(std::string_view& rest) const {
    for (const char* ending : {"", ".next", ".old", ".damaged"})
      std::filesystem::remove(folder_.file(kName) + ending);
    for (const char* ending : {"", ".next", ".old"}) {
      const std::string_view text = rest.substr(0, rest.find('\0'));
      if (!text.empty()) folder_.write(kName + std::string(ending), std::string(text));
      rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    }
    return folder_.file(kName);
  }

 private:
  static constexpr const char* kName = "edge.state";
  TemporaryFolder folder_;
};

MeterPeriod periodOf(uint8_t chosen) {
  const auto unit = static_cast<MeterPeriod::Unit>(chosen % 3);
  const unsigned day = unit == MeterPeriod::Unit::kWeek ? chosen % 7u : 1 + chosen % 31u;
  return {unit, day, chosen % 24u};
}

void play(ByteView script, MeterStore& store, const std::string& path) {
  std::time_t now = 1'700'000'000;
  for (; script.size() >= kStep; script = script.subspan(kStep)) {
    const std::string name = kNames[script[1] % kNames.size()];
    const uint16_t number = load16(&script[2]);
    switch (script[0] % 6) {
      case 0: {
        const MeterPeriod period = periodOf(script[3]);
        const MeterStore::Entry& entry = store.open(name, period, now);
        CHECK(entry.until > now && entry.period == period);
        break;
      }
      case 1:
        store.note(name, uint64_t{number} << script[0] / 6 % 48);
        break;
      case 2:
        store.add(name, number);
        break;
      case 3:
        now += std::time_t{number} << script[0] / 6 % 12;
        break;
      case 4:
        now -= number;
        break;
      default:
        if (store.wantsSave(now) || script[0] & 0x40) {
          CHECK(store.save(now).empty());
          CHECK(!store.wantsSave(now));
        }
    }
  }
  CHECK(store.save(now).empty());
  MeterStore again(path);
  for (const char* name : kNames) {
    const MeterStore::Entry *was = store.find(name), *is = again.find(name);
    CHECK((was == nullptr) == (is == nullptr) && (!was || *was == *is));
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  static const Files files;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view text = rest.substr(0, rest.find('\0'));
  const std::optional<MeterStore::Entries> entries = read(text);
  if (entries) CHECK(read(MeterStore::format(*entries)) == entries);
  const std::string path = files.begin(rest);
  MeterStore store(path);
  for (const char* name : kNames) {
    if (!entries) break;
    const auto known = entries->find(name);
    CHECK((known == entries->end()) == (store.find(name) == nullptr));
  }
  CHECK(std::filesystem::exists(path + ".damaged") == (!text.empty() && !entries));
  play({reinterpret_cast<const uint8_t*>(rest.data()), rest.size()}, store, path);
}
