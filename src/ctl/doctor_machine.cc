#include "ctl/doctor_machine.h"

#include <charconv>
#include <fstream>
#include <sstream>

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
  if (!digits || std::from_chars(digits->data(), digits->data() + digits->size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

std::optional<uint64_t> Machine::capabilities(const std::string& process, const std::string& set) const {
  std::ifstream in(path("/proc/" + process + "/status"));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(set + ":\t")) continue;
    uint64_t value = 0;
    const char* begin = line.data() + set.size() + 2;
    if (std::from_chars(begin, line.data() + line.size(), value, 16).ec == std::errc()) return value;
  }
  return std::nullopt;
}

bool Machine::isUserNamespace() const {
  std::istringstream map(text("/proc/self/uid_map").value_or("0 0 4294967295"));
  uint64_t inside = 0, outside = 0, count = 0;
  map >> inside >> outside >> count;
  return inside != 0 || outside != 0 || count != 4294967295;
}

}  // namespace braid
