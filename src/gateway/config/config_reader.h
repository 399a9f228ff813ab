#pragma once

// Reads typed values out of the tree and collects what is wrong with them. A reader that finds a
// mistake reports it and continues with the default, so that one run finds every mistake of a file.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/config_node.h"

namespace braid {

/// A value with its name in messages ("peers[0].pin").
struct ConfigValue {
  const ConfigNode* node = nullptr;
  std::string key;
  const std::string* file = nullptr;  ///< the fragment that holds it; nullptr: the main file
  explicit operator bool() const { return node != nullptr; }
};

/// The mistakes found until now in one file and its fragments.
class ConfigDiagnostics {
 public:
  explicit ConfigDiagnostics(std::string file) : file_(std::move(file)) {}
  void add(const ConfigValue& at, std::string problem, std::string remedy);
  /// Reports a mistake at a key of this mapping.
  void add(const ConfigValue& map, const ConfigNode::Key& at, std::string key, std::string problem,
           std::string remedy);
  void add(ConfigError error) { errors_.push_back(std::move(error)); }
  bool empty() const { return errors_.empty(); }
  size_t size() const { return errors_.size(); }
  /// All mistakes, file by file, in the order of their places.
  ConfigErrors take();

 private:
  std::string file_;
  ConfigErrors errors_;
};

/// The section of the table of settings (settings.h) that a mapping is: its key without indices. A
/// fragment holds the keys of one peer.
std::string sectionOf(const ConfigValue& value);

/// Reports a value that is not a mapping, keys that are not in the table of settings, repeated keys
/// and keys without a value.
void checkKeys(const ConfigValue& map, ConfigDiagnostics& out);

/// An item of a sequence, or the value of a key of a mapping; converts to false when the key is
/// absent or has no value.
ConfigValue itemOf(const ConfigValue& sequence, size_t index);
ConfigValue childOf(const ConfigValue& map, std::string_view name);
/// As childOf(). Reports a key that a mapping lacks, with this remedy.
ConfigValue requiredChild(const ConfigValue& map, std::string_view name, const std::string& remedy,
                          ConfigDiagnostics& out);

/// The readers below return nullopt when the value is absent (nothing is reported) or wrong (which
/// is reported).

/// A text for a message: cut and cleaned, because a long or unprintable one must not flood a
/// terminal or a log.
std::string inQuotes(std::string_view text);

/// Any scalar. A placeholder left over from the examples (CHANGE_ME...) is reported.
std::optional<std::string> readText(const ConfigValue& value, ConfigDiagnostics& out);
/// One of `choices`.
std::optional<std::string> readChoice(const ConfigValue& value,
                                      std::span<const std::string_view> choices,
                                      ConfigDiagnostics& out);
/// A name of an uplink or a peer, see isName().
std::optional<std::string> readName(const ConfigValue& value, ConfigDiagnostics& out);
/// A network interface name that the kernel accepts: 1 to 15 bytes without slash, colon and space.
std::optional<std::string> readInterface(const ConfigValue& value, ConfigDiagnostics& out);
/// A whole number from `low` to `high`.
std::optional<uint64_t> readNumber(const ConfigValue& value, uint64_t low, uint64_t high,
                                   ConfigDiagnostics& out);
/// A duration from `low` to `high`; or the word `zero`, which gives 0. nullptr: no word does.
std::optional<Duration> readDuration(const ConfigValue& value, Duration low, Duration high,
                                     ConfigDiagnostics& out, const char* zero = nullptr);
std::optional<uint64_t> readByteCount(const ConfigValue& value, uint64_t low, uint64_t high,
                                      ConfigDiagnostics& out);
/// Bits per second.
std::optional<uint64_t> readBitRate(const ConfigValue& value, uint64_t low, uint64_t high,
                                    ConfigDiagnostics& out);
/// A decimal number from 0 to 1, such as 0.5; no exponent.
std::optional<double> readFraction(const ConfigValue& value, ConfigDiagnostics& out);
/// One port, or two with a dash in between: "5060-5080".
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
};
std::optional<PortRange> readPortRange(const ConfigValue& value, ConfigDiagnostics& out);
/// A number from `low` to `high`, or "auto", which gives 0.
std::optional<uint64_t> readAutoOrNumber(const ConfigValue& value, uint64_t low, uint64_t high,
                                         ConfigDiagnostics& out);
/// The name of an interface, or an altname: up to 127 bytes.
std::optional<std::string> readLinkName(const ConfigValue& value, ConfigDiagnostics& out);
/// A MAC address, in lower case.
std::optional<std::string> readMac(const ConfigValue& value, ConfigDiagnostics& out);
/// A domain such as "example.net".
std::optional<std::string> readDomain(const ConfigValue& value, ConfigDiagnostics& out);
/// Where a device is plugged in (devicePath()).
std::optional<std::string> readDevicePath(const ConfigValue& value, ConfigDiagnostics& out);
std::optional<Address> readAddress(const ConfigValue& value, ConfigDiagnostics& out);
/// An address with the prefix length of its network; host bits may be set.
std::optional<InterfaceAddress> readInterfaceAddress(const ConfigValue& value,
                                                     ConfigDiagnostics& out);
/// A network; host bits that are set are reported.
std::optional<Prefix> readPrefix(const ConfigValue& value, ConfigDiagnostics& out);
/// A numeric address and port.
std::optional<Endpoint> readEndpoint(const ConfigValue& value, ConfigDiagnostics& out);
/// Whether a text can be a host name in the DNS.
bool isHostName(const std::string& text);
/// A numeric address or a host name, with a port. `numeric` is set for a numeric address.
struct RemoteEndpoint {
  std::optional<Endpoint> numeric;
  HostPort host;
  std::string toString() const;
};
std::optional<RemoteEndpoint> readRemoteEndpoint(const ConfigValue& value, ConfigDiagnostics& out);
/// The items of a sequence of at most `limit` items; reports any other type and a longer sequence.
std::vector<ConfigValue> readSequence(const ConfigValue& value, size_t limit,
                                      ConfigDiagnostics& out);

/// Assigns what a reader returned, unless it is nullopt.
template <typename T, typename V>
void assign(T& to, const std::optional<V>& value) {
  if (value) to = static_cast<T>(*value);
}

}  // namespace braid
