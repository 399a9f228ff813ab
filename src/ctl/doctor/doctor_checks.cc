#include "ctl/doctor/doctor_checks.h"

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/views/format.h"

namespace braid {

std::optional<std::string> Machine::text(const std::string& file) const {
  std::ifstream in(path(file));
  std::stringstream all;
  if (!in || !(all << in.rdbuf())) return std::nullopt;
  std::string text = all.str();
  return text.substr(0, text.find_last_not_of(" \t\n") + 1);
}

std::optional<int64_t> Machine::number(const std::string& file) const {
  std::optional<std::string> digits = text(file);
  int64_t value = 0;
  if (!digits ||
      std::from_chars(digits->data(), digits->data() + digits->size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

std::optional<uint64_t> Machine::capabilities(const std::string& process,
                                              const std::string& set) const {
  std::ifstream in(path("/proc/" + process + "/status"));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(set + ":\t")) continue;
    uint64_t value = 0;
    const char* begin = line.data() + set.size() + 2;
    if (std::from_chars(begin, line.data() + line.size(), value, 16).ec == std::errc())
      return value;
  }
  return std::nullopt;
}

bool Machine::isUserNamespace() const {
  std::istringstream map(text("/proc/self/uid_map").value_or("0 0 4294967295"));
  uint64_t inside = 0, outside = 0, count = 0;
  map >> inside >> outside >> count;
  return inside != 0 || outside != 0 || count != 4294967295;
}

nlohmann::json DoctorReport::toJson() const {
  using nlohmann::json;
  json out{{"findings", json::array()}, {"unknown", json::array()}, {"fine", json::array()}};
  for (const Finding& f : findings_)
    out["findings"].push_back(
        {{"check", f.check}, {"what", f.what}, {"why", f.why}, {"remedy", f.remedy}});
  for (const Finding& f : unknown_) out["unknown"].push_back({{"check", f.check}, {"why", f.what}});
  for (const Finding& f : fine_) out["fine"].push_back({{"check", f.check}, {"what", f.what}});
  return out;
}

std::string DoctorReport::toText() const {
  std::string text;
  for (const Finding& f : findings_) {
    text += "WRONG    " + f.check + ": " + printable(f.what) + "\n";
    text += "         " + printable(f.why.empty() ? "" : f.why + ". ") +
            "Remedy: " + printable(f.remedy) + "\n";
  }
  for (const Finding& f : unknown_) text += "UNKNOWN  " + f.check + ": " + printable(f.what) + "\n";
  for (const Finding& f : fine_) text += "fine     " + f.check + ": " + printable(f.what) + "\n";
  size_t n = findings_.size();
  return text +
         (n == 0 ? "nothing wrong was found"
                 : std::to_string(n) + (n == 1 ? " finding" : " findings")) +
         (unknown_.empty() ? "\n" : "; not everything could be looked at\n");
}

}  // namespace braid
