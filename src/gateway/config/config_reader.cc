#include "gateway/config/config_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/name.h"
#include "base/nearest_word.h"
#include "base/printable.h"
#include "gateway/config/settings.h"
#include "gateway/config/units.h"

namespace braid {
namespace {

const char* kindName(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kScalar:
      return "a single value";
    case ConfigNode::Kind::kSequence:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a mapping";
  }
  return "";
}

bool isWord(const ConfigValue& value, std::string_view word) {
  return value && value.node->kind == ConfigNode::Kind::kScalar && value.node->text == word;
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

// What to write instead of an example's placeholder, by the key that holds it.
std::string placeholderRemedy(const std::string& key) {
  static constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
      {"pin",
       "put the pin that 'braidctl keygen' printed at the peer ('braidctl pin FILE.crt' prints it "
       "again)"},
      {"endpoints", "put the address and port at which the peer listens, such as 192.0.2.1:4433"},
      {"listen", "put the address and port to listen on, such as 0.0.0.0:4433"},
      {"interface", "put the name of the network interface ('ip link' lists them)"},
      {"gateway", "put the router's address on this uplink, or auto"},
      {"addresses", "put this gateway's inner address, such as 10.99.0.1/30"},
      {"routes", "put the networks behind the peer, such as 10.1.0.0/16"},
      {"prefixes", "put the networks behind the peer, such as 10.1.0.0/16"}};
  std::string name = key.substr(0, key.find_last_not_of("0123456789[]") + 1);
  name = name.substr(name.rfind('.') + 1);
  for (auto [known, meaning] : kMeanings) {
    if (name == known) return std::string(meaning);
  }
  return "put the value of this gateway";
}

std::string unknownKeyRemedy(std::string_view text, std::span<const std::string_view> known) {
  if (std::string_view meant = nearestWord(text, known); !meant.empty())
    return "did you mean '" + std::string(meant) + "'?";
  return "known here: " + joined(known);
}

std::string outside(std::string_view text, const std::string& low, const std::string& high) {
  return inQuotes(text) + " is outside " + low + " to " + high;
}

// A value in a range. `what` it must be, in words; `noun`: the same in short; `how` it is written.
template <typename T>
std::optional<T> readRanged(const ConfigValue& value, T low, T high,
                            std::optional<T> (*parse)(std::string_view), std::string (*show)(T),
                            const char* what, const std::string& noun, const std::string& how,
                            ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<T> read = parse(*text);
  if (!read) {
    out.add(value, inQuotes(*text) + " is no " + what, how);
  } else if (*read < low || *read > high) {
    out.add(value, outside(*text, show(low), show(high)), "use a " + noun + " in that range");
  } else {
    return read;
  }
  return std::nullopt;
}

std::string childKey(const ConfigValue& map, std::string_view name) {
  return map.key.empty() ? std::string(name) : map.key + "." + std::string(name);
}

}  // namespace

std::string inQuotes(std::string_view text) {
  constexpr size_t kLongest = 60;
  return "'" + printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
}

void ConfigDiagnostics::add(const ConfigValue& at, std::string problem, std::string remedy) {
  errors_.push_back({at.file ? *at.file : file_, at.node ? at.node->line : 0,
                     at.node ? at.node->column : 0, at.key, std::move(problem), std::move(remedy)});
}

void ConfigDiagnostics::add(const ConfigValue& map, const ConfigNode::Key& at, std::string key,
                            std::string problem, std::string remedy) {
  errors_.push_back({map.file ? *map.file : file_, at.line, at.column, std::move(key),
                     std::move(problem), std::move(remedy)});
}

ConfigErrors ConfigDiagnostics::take() {
  auto rank = [&](const ConfigError& e) {
    return std::tuple(e.file != file_, e.file, e.line, e.column);
  };
  std::stable_sort(errors_.begin(), errors_.end(),
                   [&](const ConfigError& a, const ConfigError& b) { return rank(a) < rank(b); });
  return std::move(errors_);
}

std::string sectionOf(const ConfigValue& value) {
  if (value.file) return "peers";
  std::string section;
  bool index = false;
  for (char c : value.key) {
    index |= c == '[';
    if (!index) section += c;
    index &= c != ']';
  }
  return section;
}

void checkKeys(const ConfigValue& map, ConfigDiagnostics& out) {
  const std::string section = sectionOf(map);
  std::vector<std::string_view> known = keysOf(section);
  if (map.file) known.push_back("routes");
  if (map.node->kind != ConfigNode::Kind::kMap) {
    out.add(map, std::string("is ") + kindName(*map.node) + " and must be a mapping",
            "write 'key: value' lines; known here: " + joined(known));
    return;
  }
  const std::vector<ConfigNode::Key>& keys = map.node->keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    const ConfigNode::Key& key = keys[i];
    auto first = std::ranges::find(keys, key.text, &ConfigNode::Key::text);
    if (std::string_view name = renamedTo(section, key.text); !name.empty()) {
      out.add(map, key, childKey(map, inQuotes(key.text)), "has another name now",
              "write '" + std::string(name) + "'");
    } else if (std::string_view remedy = goneFor(section, key.text); !remedy.empty()) {
      out.add(map, key, childKey(map, key.text), "this key is gone", std::string(remedy));
    } else if (std::ranges::find(known, key.text) == known.end()) {
      out.add(map, key, childKey(map, inQuotes(key.text)), "unknown key",
              unknownKeyRemedy(key.text, known));
    } else if (first != keys.begin() + static_cast<std::ptrdiff_t>(i)) {
      out.add(map, key, childKey(map, key.text),
              "given twice, first in line " + std::to_string(first->line), "remove one of them");
    } else if (map.node->items[i].kind == ConfigNode::Kind::kNull) {
      out.add(map, key, childKey(map, key.text), "has no value", "give it one, or remove the key");
    }
  }
}

ConfigValue itemOf(const ConfigValue& sequence, size_t index) {
  return {&sequence.node->items[index], sequence.key + "[" + std::to_string(index) + "]",
          sequence.file};
}

ConfigValue childOf(const ConfigValue& map, std::string_view name) {
  for (size_t i = 0; map && i < map.node->keys.size(); ++i) {
    if (map.node->keys[i].text != name) continue;
    if (map.node->items[i].kind == ConfigNode::Kind::kNull) break;
    return {&map.node->items[i], childKey(map, name), map.file};
  }
  return {};
}

ConfigValue requiredChild(const ConfigValue& map, std::string_view name, const std::string& remedy,
                          ConfigDiagnostics& out) {
  bool lacks =
      map.node->kind == ConfigNode::Kind::kMap &&
      std::ranges::find(map.node->keys, name, &ConfigNode::Key::text) == map.node->keys.end();
  if (lacks) out.add({map.node, childKey(map, name), map.file}, "is missing", remedy);
  return childOf(map, name);
}

std::optional<std::string> readText(const ConfigValue& value, ConfigDiagnostics& out) {
  if (!value) return std::nullopt;
  if (value.node->kind != ConfigNode::Kind::kScalar) {
    out.add(value, std::string("is ") + kindName(*value.node) + " and must be a single value",
            "write one value behind the colon");
    return std::nullopt;
  }
  const std::string& text = value.node->text;
  size_t placeholder = text.find("CHANGE_ME");
  if (placeholder != std::string::npos) {
    size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", placeholder);
    std::string token = text.substr(placeholder, end - placeholder);
    out.add(value, "still holds the placeholder " + token, placeholderRemedy(value.key));
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> readChoice(const ConfigValue& value,
                                      std::span<const std::string_view> choices,
                                      ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text || std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
  out.add(value, inQuotes(*text) + " is not known", "use one of: " + joined(choices));
  return std::nullopt;
}

std::optional<std::string> readName(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text || isName(*text)) return text;
  out.add(value, inQuotes(*text) + " is no name",
          "use 1 to 32 letters, digits, dots, dashes or underscores");
  return std::nullopt;
}

namespace {

std::optional<std::string> readLinkName(const ConfigValue& value, size_t longest,
                                        ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  bool good = !text->empty() && text->size() <= longest && *text != "." && *text != ".." &&
              std::none_of(text->begin(), text->end(), [](char c) {
                return static_cast<unsigned char>(c) <= 0x20 || c == '/' || c == ':' || c == '%' ||
                       c == 0x7f;
              });
  if (good) return text;
  out.add(value, inQuotes(*text) + " is no interface name",
          "use 1 to " + std::to_string(longest) + " bytes without spaces, slashes and colons");
  return std::nullopt;
}

}  // namespace

std::optional<std::string> readInterface(const ConfigValue& value, ConfigDiagnostics& out) {
  return readLinkName(value, 15, out);  // IFNAMSIZ with its terminating zero is 16
}

std::optional<std::string> readLinkName(const ConfigValue& value, ConfigDiagnostics& out) {
  return readLinkName(value, 127, out);  // ALTIFNAMSIZ with its terminating zero is 128
}

std::optional<std::string> readMac(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  constexpr size_t kLength = 17;  // "02:00:5e:00:53:01"
  bool good = text->size() == kLength;
  for (size_t i = 0; good && i < kLength; ++i) {
    auto c = static_cast<unsigned char>((*text)[i]);
    good = i % 3 == 2 ? c == ':' : std::isxdigit(c) != 0;
    if (good) (*text)[i] = static_cast<char>(std::tolower(c));
  }
  if (good) return text;
  out.add(value, inQuotes(*text) + " is no MAC address",
          "write it as 'ip link' does, in quotes: \"02:00:5e:00:53:01\"");
  return std::nullopt;
}

std::optional<std::string> readDomain(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  constexpr size_t kLongest = 253;  // RFC 1035 section 2.3.4, without the root
  bool good = !text->empty() && text->size() <= kLongest && std::isalnum(text->front()) != 0 &&
              std::isalnum(text->back()) != 0 && text->find("..") == std::string::npos &&
              std::all_of(text->begin(), text->end(), isNameCharacter);
  if (good) return text;
  out.add(value, inQuotes(*text) + " is no domain", "write one such as example.net");
  return std::nullopt;
}

std::optional<std::string> readDevicePath(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  constexpr size_t kLongest = 255;
  bool good = text->size() <= kLongest &&
              (text->starts_with("pci-") || text->starts_with("platform-")) &&
              std::none_of(text->begin(), text->end(),
                           [](char c) { return static_cast<unsigned char>(c) <= 0x20; });
  if (good) return text;
  out.add(value, inQuotes(*text) + " is no path of a device",
          "'networkctl status INTERFACE' shows it, such as pci-0000:00:14.0-usb-0:2:1.0");
  return std::nullopt;
}

std::optional<uint64_t> readNumber(const ConfigValue& value, uint64_t low, uint64_t high,
                                   ConfigDiagnostics& out) {
  auto text = [](uint64_t number) { return std::to_string(number); };
  return readRanged<uint64_t>(value, low, high, parseNumber, text, "whole number", "number",
                              "use a number from " + text(low) + " to " + text(high), out);
}

std::optional<Duration> readDuration(const ConfigValue& value, Duration low, Duration high,
                                     ConfigDiagnostics& out, const char* zero) {
  if (zero && isWord(value, zero)) return Duration{};
  return readRanged<Duration>(value, low, high, parseDuration, durationText, "time", "time",
                              "write a number and its unit: us, ms, s, min, h or d, such as 250ms",
                              out);
}

std::optional<uint64_t> readByteCount(const ConfigValue& value, uint64_t low, uint64_t high,
                                      ConfigDiagnostics& out) {
  return readRanged<uint64_t>(
      value, low, high, parseByteCount, byteCountText, "size", "size",
      "write a number and its unit: B, kB, MB, GB, KiB, MiB or GiB, such as 4MiB", out);
}

std::optional<uint64_t> readBitRate(const ConfigValue& value, uint64_t low, uint64_t high,
                                    ConfigDiagnostics& out) {
  return readRanged<uint64_t>(
      value, low, high, parseBitRate, bitRateText, "rate", "rate",
      "write a number and its unit: kbit/s, Mbit/s or Gbit/s, such as 20Mbit/s", out);
}

std::optional<double> readFraction(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  double number = 0;
  auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), number, std::chars_format::fixed);
  if (error != std::errc() || end != text->data() + text->size() || std::isnan(number)) {
    out.add(value, inQuotes(*text) + " is no number", "use a number from 0 to 1, such as 0.5");
  } else if (number < 0 || number > 1) {
    out.add(value, outside(*text, "0", "1"), "use a number in that range");
  } else {
    return number;
  }
  return std::nullopt;
}

std::optional<PortRange> readPortRange(const ConfigValue& value, ConfigDiagnostics& out) {
  constexpr uint64_t kLargest = 65535;
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  size_t dash = text->find('-');
  std::optional<uint64_t> first = parseNumber(std::string_view(*text).substr(0, dash));
  std::optional<uint64_t> last = first;
  if (dash != std::string::npos) last = parseNumber(std::string_view(*text).substr(dash + 1));
  if (!first || !last || *first < 1 || *first > kLargest || *last > kLargest) {
    out.add(value, inQuotes(*text) + " is no port or range of ports",
            "write one from 1 to 65535, or two with a dash, such as 5060-5080");
  } else if (*first > *last) {
    out.add(value, inQuotes(*text) + " ends before it begins", "write the smaller port first");
  } else {
    return PortRange{static_cast<uint16_t>(*first), static_cast<uint16_t>(*last)};
  }
  return std::nullopt;
}

std::optional<uint64_t> readAutoOrNumber(const ConfigValue& value, uint64_t low, uint64_t high,
                                         ConfigDiagnostics& out) {
  if (isWord(value, "auto")) return 0;
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<uint64_t> number = parseNumber(*text);
  if (number && *number >= low && *number <= high) return number;
  out.add(value,
          inQuotes(*text) + " is neither 'auto' nor a number from " + std::to_string(low) + " to " +
              std::to_string(high),
          "use 'auto' unless you know better");
  return std::nullopt;
}

std::vector<ConfigValue> readSequence(const ConfigValue& value, size_t limit,
                                      ConfigDiagnostics& out) {
  std::vector<ConfigValue> items;
  if (!value) return items;
  if (value.node->kind != ConfigNode::Kind::kSequence) {
    out.add(value, std::string("is ") + kindName(*value.node) + " and must be a list",
            "write [a, b] or one '- item' per line");
    return items;
  }
  if (value.node->items.size() > limit) {
    out.add(value, "has " + std::to_string(value.node->items.size()) + " items",
            "keep to " + std::to_string(limit));
    return items;
  }
  for (const ConfigNode& node : value.node->items) {
    items.push_back({&node, value.key + "[" + std::to_string(items.size()) + "]", value.file});
    if (node.kind == ConfigNode::Kind::kNull) {
      out.add(items.back(), "has no value", "give it one, or remove the item");
      items.back().node = nullptr;
    }
  }
  return items;
}

}  // namespace braid
