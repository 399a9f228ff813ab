#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ostream>
#include <stdexcept>

#include "ctl/verbs.h"
#include "gateway/dtls/identity.h"
#include "tunnel/wire/pin.h"

namespace braid {

void keygen(const std::string& name, const std::string& folder, std::ostream& out) {
  bool plain = !name.empty() && name.size() <= 32 && name.front() != '.' && name.front() != '-' &&
               std::all_of(name.begin(), name.end(), [](unsigned char c) {
                 return (c < 0x80 && std::isalnum(c)) || c == '.' || c == '_' || c == '-';
               });
  if (!plain) throw std::runtime_error("NAME must be 1 to 32 letters, digits, dots, dashes or underscores");
  std::filesystem::path base = std::filesystem::path(folder) / name;
  std::string key = base.string() + ".key", certificate = base.string() + ".crt";
  Pin made = generateIdentity(key, certificate, name);
  out << key << "  the private key: it stays on this gateway\n"
      << certificate << "  its certificate\n"
      << formatPin(made) << "  the pin: give it to the peers\n";
}

void pin(const std::string& certificate, std::ostream& out) {
  out << formatPin(readPin(certificate)) << '\n';
}

}  // namespace braid
