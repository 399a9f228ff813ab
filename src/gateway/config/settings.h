#pragma once

// The table of settings: every key of the configuration file, once. From it come the keys that the
// reader knows, the reading of single values with their ranges, what a reload cannot apply, and the
// reference: docs/reference.md and the sections of braid.yaml(5).

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/config_reader.h"

namespace braid {

/// The names that makeRecoveryPolicy() knows.
inline constexpr std::string_view kRecoveryPolicies[] = {
    "none", "fuso", "cofuso", "redundant", "proactive", "reactive", "corrective", "adaptive"};

/// What the values of a section are read into: the Config, or one item of its lists.
using SettingTarget = std::variant<Config*, UplinkConfig*, UplinkConfig::Meter*, PeerConfig*,
                                   PortForward*, StreamRule*, ShimRule*, RecoveryClass*>;

/// What a setting may be, and where its section's target keeps it.
struct SettingValue {
  std::string values;    ///< type and range, as documents say it
  std::string fallback;  ///< the default, as documents say it; empty: that of a section's keys
  /// Reads the value. Empty: a check of the section reads it.
  std::function<void(const ConfigValue&, const SettingTarget&, ConfigDiagnostics&)> read{};
  /// The value as a text, to compare two configurations. Empty: not a single value of a Config.
  std::function<std::string(const Config&)> show{};
  std::string missing{};  ///< what to do when the key is missing; empty: it may be

  SettingValue withDefault(std::string text) &&;
  SettingValue required(std::string remedy) &&;
  /// Checks what was read, unless there is a mistake in it. T: the section's target.
  template <typename T>
  SettingValue checkedBy(void (*check)(const ConfigValue&, T&, ConfigDiagnostics&)) && {
    read = [inner = std::move(read), check](const ConfigValue& from, const SettingTarget& to,
                                            ConfigDiagnostics& out) {
      size_t before = out.size();
      inner(from, to, out);
      if (from && out.size() == before) check(from, *std::get<T*>(to), out);
    };
    return std::move(*this);
  }
};

/// How a changed value takes effect.
enum class SettingChange : uint8_t { kReload, kRestart };

struct Setting {
  /// Path without indices, such as "tunnel.ack-shim" or, for the items of a list, "uplinks"; empty:
  /// the top.
  std::string_view section;
  std::string_view key;
  SettingValue value;
  SettingChange change;
  std::string_view help;      ///< without a full stop; `...`: what is written in a file
  std::string_view former{};  ///< its name in older releases; empty: the same
  std::string path() const;   ///< "tunnel.ack-shim.max-flows"
};

/// All settings, section by section, in the order in which messages name the keys.
std::span<const Setting> settings();
std::vector<std::string_view> keysOf(std::string_view section);
/// The present name of a key that was renamed; empty: it was not.
std::string_view renamedTo(std::string_view section, std::string_view key);

/// What to do about a key that only older releases had; empty: there was none.
std::string_view goneFor(std::string_view section, std::string_view key);

/// Reads a section with the sections and lists in it. `target` is of the section's type.
void readSection(const ConfigValue& value, const SettingTarget& target, ConfigDiagnostics& out);

/// Bytes of an Ethernet header with a VLAN tag, which device.mtu does not count.
inline constexpr size_t kTaggedEthernetHeader = 18;
/// The differences between two configurations that need a restart, each at its key; empty: a reload
/// is enough. `tree`: the tree of the main file of `after`. `bufferSize`: bytes that a packet
/// buffer holds.
ConfigErrors needsRestart(const Config& before, const Config& after, const ConfigNode& tree,
                          size_t bufferSize);

/// docs/reference.md.
std::string settingsReference();
/// The part of braid.yaml(5) from "SECTIONS" on, up to "FILES".
std::string settingsManual();
/// The function of packaging/openwrt/braid/files/uci2yaml.sh that lists the options of a section
/// which become a line each. Former names are among them, because only what becomes a line can be
/// reported as a mistake.
std::string settingsUci();

}  // namespace braid
