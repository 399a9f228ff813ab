#include "gateway/meter_book.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "host/system_error.h"
#include "host/unique_fd.h"

namespace braid {

namespace {
using nlohmann::json;

/// Unsaved bytes that are worth a write to flash at once, and seconds after which any are. Ours.
constexpr uint64_t kManyUnsaved = 1'000'000;
constexpr std::time_t kSaveAfter = 600;
/// Bytes of the file at most. Ours: 32 uplinks take 3 KB.
constexpr size_t kMaxFile = 64 << 10;

std::string readAll(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  std::string text(kMaxFile + 1, '\0');
  ssize_t got = -1;
  if (file) {
    do got = ::read(file.get(), text.data(), text.size());
    while (got < 0 && errno == EINTR);
  }
  if (got < 0) throw SystemError(errno, "cannot read " + path + ": " + std::strerror(errno));
  text.resize(static_cast<size_t>(got));
  return text;
}

/// A whole number of that range. get() would wrap others, and do anything with 1e300.
template <typename T>
T wholeOf(const json& j) {
  bool fits = j.is_number_unsigned() ? std::in_range<T>(j.get<uint64_t>())
                                     : j.is_number_integer() && std::in_range<T>(j.get<int64_t>());
  if (!fits) throw std::runtime_error("not a number of that range");
  return j.get<T>();
}

// True: all of it is there.
bool writeAll(const std::string& path, const std::string& text) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0640));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

MeterBook::Entry entryOf(const json& j) {
  MeterBook::Entry entry;
  entry.used = wholeOf<uint64_t>(j.at("used"));
  entry.until = wholeOf<std::time_t>(j.at("until"));
  const json& period = j.at("period");
  entry.period.unit = static_cast<MeterPeriod::Unit>(wholeOf<uint8_t>(period.at(0)));
  entry.period.day = wholeOf<unsigned>(period.at(1));
  entry.period.hour = wholeOf<unsigned>(period.at(2));
  return entry;
}

json jsonOf(const MeterBook::Entry& entry) {
  return {{"used", entry.used},
          {"until", entry.until},
          {"period", {static_cast<unsigned>(entry.period.unit), entry.period.day, entry.period.hour}}};
}
}  // namespace

MeterBook::Entries MeterBook::parse(std::string_view text) {
  const json book = json::parse(text);
  Entries entries;
  for (const auto& [uplink, entry] : book.at("uplinks").items()) entries[uplink] = entryOf(entry);
  return entries;
}

std::string MeterBook::format(const Entries& entries) {
  json uplinks = json::object();
  for (const auto& [uplink, entry] : entries) uplinks[uplink] = jsonOf(entry);
  return json{{"uplinks", std::move(uplinks)}}.dump() + "\n";
}

MeterBook::MeterBook(std::string path) : path_(std::move(path)) {
  std::string text = readAll(path_);
  try {
    if (!text.empty()) entries_ = parse(text);
  } catch (const std::exception&) {
    throw std::runtime_error(path_ + " does not hold counts of metered uplinks; remove it to count from 0");
  }
  if (std::string problem = save(0); !problem.empty())
    throw std::runtime_error(problem + "; create the folder for the daemon's user, or set `state`");
}

const MeterBook::Entry& MeterBook::open(const std::string& uplink, const MeterPeriod& period,
                                        std::time_t now) {
  auto [at, fresh] = entries_.try_emplace(uplink);
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

void MeterBook::note(const std::string& uplink, uint64_t used) {
  auto at = entries_.find(uplink);
  if (at == entries_.end()) return;
  unsaved_ += used - std::min(used, at->second.used);
  at->second.used = used;
}

const MeterBook::Entry* MeterBook::find(const std::string& uplink) const {
  auto at = entries_.find(uplink);
  return at != entries_.end() ? &at->second : nullptr;
}

bool MeterBook::wantsSave(std::time_t now) const {
  return changed_ || unsaved_ >= kManyUnsaved || (unsaved_ > 0 && now - savedAt_ >= kSaveAfter);
}

// Without fsync, which may hold packets up for long: what a power cut leaves is the old file or the new one.
std::string MeterBook::save(std::time_t now) {
  std::string text = format(entries_);
  std::string fresh = path_ + ".new";
  bool good = false;  // the last counts of a daemon that ends have no other chance
  for (int tries = 0; tries < 2 && !good; ++tries)
    good = writeAll(fresh, text) && ::rename(fresh.c_str(), path_.c_str()) == 0;
  if (!good) return "cannot write " + path_ + ": " + std::strerror(errno);
  unsaved_ = 0;
  changed_ = false;
  savedAt_ = now;
  return {};
}

}  // namespace braid
