#include <ostream>
#include <stdexcept>

#include "ctl/verbs.h"
#include "gateway/config/config.h"

namespace braid {

void check(const std::string& file, std::ostream& out) {
  ConfigResult result = loadConfig(file);
  if (const auto* errors = std::get_if<ConfigErrors>(&result)) {
    std::string text;
    for (const ConfigError& error : *errors) text += (text.empty() ? "" : "\n") + error.toString();
    throw std::runtime_error(text);
  }
  const auto& config = std::get<Config>(result);
  out << file << ": no mistakes; uplinks " << config.uplinks.size() << ", listening " << config.listen.size()
      << ", peers " << config.peers.size() << '\n';
}

}  // namespace braid
