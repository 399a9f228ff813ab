#pragma once

// The table of settings: every key of the configuration file, once. From it come the keys that the
// reader knows, the reading of single values with their ranges, what a reload cannot apply, and the
// reference: docs/reference.md and the sections of braid.yaml(5).

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/config_reader.h"

namespace braid {

/// The names that makeRecoveryPolicy() knows.
inline constexpr std::string_view kRecoveryPolicies[] = {
    "none", "fuso", "cofuso", "redundant", "proactive", "reactive", "corrective", "adaptive"};

/// What a setting may be, and where Config keeps it.
struct SettingValue {
  std::string values;    ///< type and range, as documents say it
  std::string fallback;  ///< the default, as documents say it; empty: that of a section's keys
  /// Reads the value. Empty: the code of the section reads it.
  std::function<void(const ConfigValue&, Config&, ConfigDiagnostics&)> read{};
  /// The value as a text, to compare two configurations. Empty: not a single value.
  std::function<std::string(const Config&)> show{};
  SettingValue withDefault(std::string text) &&;
};

/// How a changed value takes effect.
enum class SettingChange : uint8_t { kReload, kRestart };

struct Setting {
  std::string_view section;  ///< path without indices, such as "tunnel.ack-shim"; empty: the top
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

/// Reads the single values of a section; those that the table leaves to the section's code are
/// skipped.
void readSettings(std::string_view section, const ConfigSection& values, Config& config,
                  ConfigDiagnostics& out);

/// docs/reference.md.
std::string settingsReference();
/// The part of braid.yaml(5) from "SECTIONS" on, up to "FILES".
std::string settingsManual();
/// The function of packaging/openwrt/braid/files/uci2yaml.sh that lists the options of a section
/// which become a line each.
std::string settingsUci();

}  // namespace braid
