#include "gateway/meter_book.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "gateway/state_file.h"

namespace braid {

namespace {
using nlohmann::json;

/// Unsaved bytes that are worth a write to flash at once, and seconds after which any are. Ours.
constexpr uint64_t kManyUnsaved = 1'000'000;
constexpr std::time_t kSaveAfter = 600;
/// Bytes of the file at most. Ours: 32 uplinks take 3 KB.
constexpr size_t kMaxFile = 64 << 10;

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
  std::string text = readStateFile(path_, kMaxFile);
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

std::string MeterBook::save(std::time_t now) {
  std::string problem = writeStateFile(path_, format(entries_), 0640);
  if (!problem.empty()) return problem;
  unsaved_ = 0;
  changed_ = false;
  savedAt_ = now;
  return {};
}

}  // namespace braid
