#include "gateway/state/meter_store.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "gateway/config/state_file.h"

namespace braid {

namespace {
using nlohmann::json;

/// Unsaved bytes after which the file is written at once, and seconds after which any unsaved bytes
/// are written.
constexpr uint64_t kManyUnsaved = 1'000'000;
constexpr std::time_t kSaveAfter = 600;
/// Largest size of the file in bytes. 32 uplinks take 3 KB.
constexpr size_t kMaxFile = 64 << 10;
/// Suffixes of the copies' names, the newer copy first.
constexpr const char* kCopies[] = {".next", ".old"};

MeterStore::Entry entryOf(const json& j) {
  MeterStore::Entry entry;
  entry.used = wholeOf<uint64_t>(j.at("used"));
  entry.until = wholeOf<std::time_t>(j.at("until"));
  const json& period = j.at("period");
  entry.period.unit = static_cast<MeterPeriod::Unit>(wholeOf<uint8_t>(period.at(0)));
  entry.period.day = wholeOf<unsigned>(period.at(1));
  entry.period.hour = wholeOf<unsigned>(period.at(2));
  return entry;
}

// nullopt: there is no such file, or format() did not write it.
std::optional<MeterStore::Entries> readEntries(const std::string& path) {
  std::string text = readStateFile(path, kMaxFile);
  try {
    return MeterStore::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

json jsonOf(const MeterStore::Entry& entry) {
  return {
      {"used", entry.used},
      {"until", entry.until},
      {"period", {static_cast<unsigned>(entry.period.unit), entry.period.day, entry.period.hour}}};
}
}  // namespace

MeterStore::Entries MeterStore::parse(std::string_view text) {
  const json book = json::parse(text);
  Entries entries;
  for (const auto& [uplink, entry] : book.at("uplinks").items()) entries[uplink] = entryOf(entry);
  return entries;
}

std::string MeterStore::format(const Entries& entries) {
  json uplinks = json::object();
  for (const auto& [uplink, entry] : entries) uplinks[uplink] = jsonOf(entry);
  return json{{"uplinks", std::move(uplinks)}}.dump() + "\n";
}

MeterStore::MeterStore(std::string path) : path_(std::move(path)) {
  if (::access(path_.c_str(), F_OK) == 0) {
    std::optional<Entries> entries = readEntries(path_);
    entries_ = entries ? std::move(*entries) : replaceDamaged();
  } else {
    for (const char* ending : kCopies)
      ::unlink((path_ + ending).c_str());  // somebody removed the file to begin at 0
  }
  if (std::string problem = write(0); !problem.empty())
    throw std::runtime_error(problem + "; create the folder for the daemon's user, or set `state`");
}

// A power cut may leave the file empty, or full of zeros. Counts that are too low may cost money,
// but a gateway that does not start costs its tunnel. So the gateway starts in any case.
MeterStore::Entries MeterStore::replaceDamaged() {
  std::string damaged = path_ + ".damaged", what = path_ + " does not hold counts of the uplinks";
  ::unlink(damaged.c_str());
  if (::link(path_.c_str(), damaged.c_str()) == 0) what += ", and is kept as " + damaged;
  for (const char* ending : kCopies) {
    std::string copy = path_ + ending;
    std::optional<Entries> entries = readEntries(copy);
    if (!entries) {
      ::unlink(copy.c_str());  // otherwise it would replace a good copy
      continue;
    }
    spdlog::warn("{}; those of {} are used, which are some minutes old", what, copy);
    return std::move(*entries);
  }
  spdlog::warn("{}; they begin at 0", what);
  return {};
}

const MeterStore::Entry& MeterStore::open(const std::string& name, const MeterPeriod& period,
                                          std::time_t now) {
  auto [at, fresh] = entries_.try_emplace(name);
  Entry& entry = at->second;
  bool over = now >= entry.until;
  if (over) entry.used = 0;
  if (over || fresh || entry.period != period) {
    entry.until = nextPeriod(period, now);
    entry.period = period;
    changed_ = true;
  }
  return entry;
}

void MeterStore::note(const std::string& name, uint64_t used) {
  auto at = entries_.find(name);
  if (at == entries_.end()) return;
  unsaved_ += used - std::min(used, at->second.used);
  at->second.used = used;
}

void MeterStore::add(const std::string& name, uint64_t bytes) {
  auto at = entries_.find(name);
  if (at == entries_.end() || bytes == 0) return;
  at->second.used += bytes;
  added_ = true;
}

const MeterStore::Entry* MeterStore::find(const std::string& name) const {
  auto at = entries_.find(name);
  return at != entries_.end() ? &at->second : nullptr;
}

bool MeterStore::wantsSave(std::time_t now) const {
  return changed_ || unsaved_ >= kManyUnsaved ||
         ((unsaved_ > 0 || added_) && now - savedAt_ >= kSaveAfter);
}

// Keeps copies of the file, because it is written without waiting for the disk: a power cut may
// destroy what was written in the last half minute. The `.old` copy is older than kSaveAfter, even
// if the clock is set once after boot.
void MeterStore::keepCopy(std::time_t now) {
  std::string next = path_ + kCopies[0], last = path_ + kCopies[1];
  if (::access(next.c_str(), F_OK) == 0) {
    if (!copiedAt_) copiedAt_ = now;
    if (std::abs(now - *copiedAt_) < kSaveAfter) return;
    (void)::rename(next.c_str(), last.c_str());
  }
  copiedAt_ = now;
  std::error_code none;  // a file system without hard links keeps no copy
  std::filesystem::create_hard_link(path_, next, none);
}

std::string MeterStore::save(std::time_t now) {
  keepCopy(now);
  return write(now);
}

std::string MeterStore::write(std::time_t now) {
  std::string problem = writeStateFile(path_, format(entries_), 0640);
  if (!problem.empty()) return problem;
  unsaved_ = 0;
  added_ = changed_ = false;
  savedAt_ = now;
  return {};
}

}  // namespace braid
