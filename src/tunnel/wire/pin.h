#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tunnel/wire/secrets.h"

namespace braid {

/// "sha256:" and the base64 (RFC 4648 section 4) of the 32 bytes.
std::string formatPin(const Pin& pin);
/// The only text that formatPin() gives for a pin; nullopt for all other text.
std::optional<Pin> parsePin(std::string_view text);

}  // namespace braid
