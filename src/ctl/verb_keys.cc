#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/fields.h"
#include "ctl/verbs.h"
#include "gateway/dtls/identity.h"
#include "tunnel/wire/pin.h"

namespace braid {

void keygen(const std::string& name, const std::string& folder, bool json, std::ostream& out) {
  bool plain = !name.empty() && name.size() <= 32 && name.front() != '.' && name.front() != '-' &&
               std::all_of(name.begin(), name.end(), [](unsigned char c) {
                 return (c < 0x80 && std::isalnum(c)) || c == '.' || c == '_' || c == '-';
               });
  if (!plain) throw std::runtime_error("NAME must be 1 to 32 letters, digits, dots, dashes or underscores");
  std::filesystem::path base = std::filesystem::path(folder) / name;
  std::string key = base.string() + ".key", certificate = base.string() + ".crt";
  const std::string made = formatPin(generateIdentity(key, certificate, name));
  if (json) {
    out << prettyJson({{"key", key}, {"certificate", certificate}, {"pin", made}});
    return;
  }
  out << key << "  the private key: it stays on this gateway\n"
      << certificate << "  its certificate\n"
      << made << "  the pin: give it to the peers\n";
}

void pin(const std::string& certificate, bool json, std::ostream& out) {
  const std::string read = formatPin(readPin(certificate));
  out << (json ? prettyJson({{"certificate", certificate}, {"pin", read}}) : read + "\n");
}

}  // namespace braid
