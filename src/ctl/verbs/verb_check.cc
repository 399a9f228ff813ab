#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/verbs/verbs.h"
#include "ctl/views/fields.h"
#include "gateway/config/config.h"

namespace braid {

namespace {

nlohmann::json jsonOf(const ConfigErrors& errors) {
  nlohmann::json out = nlohmann::json::array();
  for (const ConfigError& e : errors) {
    out.push_back({{"file", e.file},
                   {"line", e.line},
                   {"column", e.column},
                   {"key", e.key},
                   {"problem", e.problem},
                   {"remedy", e.remedy}});
  }
  return out;
}

}  // namespace

bool check(const std::string& file, bool json, std::ostream& out) {
  ConfigResult result = loadConfig(file);
  const auto* errors = std::get_if<ConfigErrors>(&result);
  const auto* config = std::get_if<Config>(&result);
  if (json) {
    nlohmann::json answer{{"file", file}, {"mistakes", jsonOf(errors ? *errors : ConfigErrors{})}};
    if (config) {
      answer["warnings"] = jsonOf(config->warnings);
      answer["uplinks"] = config->uplinks.size();
      answer["listening"] = config->listen.size();
      answer["peers"] = config->peers.size();
    }
    out << prettyJson(answer);
    return config != nullptr;
  }
  if (errors) {
    std::string text;
    for (const ConfigError& error : *errors) text += (text.empty() ? "" : "\n") + error.toString();
    throw std::runtime_error(text);
  }
  for (const ConfigError& warning : config->warnings)
    out << "warning: " << warning.toString() << '\n';
  out << file << ": no mistakes; uplinks " << config->uplinks.size() << ", listening "
      << config->listen.size() << ", peers " << config->peers.size() << '\n';
  return true;
}

}  // namespace braid
