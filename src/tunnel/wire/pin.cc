#include "tunnel/wire/pin.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace braid {

namespace {
constexpr std::string_view kPrefix = "sha256:";
constexpr size_t kBase64Size = 44;  // of 32 bytes: 43 characters and one '='
}  // namespace

std::string formatPin(const Pin& pin) {
  std::array<unsigned char, kBase64Size + 1> text;
  EVP_EncodeBlock(text.data(), pin.data(), pin.size());
  return std::string(kPrefix) + reinterpret_cast<const char*>(text.data());
}

std::optional<Pin> parsePin(std::string_view text) {
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + kBase64Size) return std::nullopt;
  std::string_view base64 = text.substr(kPrefix.size());
  std::array<unsigned char, kBase64Size / 4 * 3> bytes;
  if (EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(base64.data()), kBase64Size) !=
      static_cast<int>(bytes.size()))
    return std::nullopt;
  Pin pin;
  std::copy_n(bytes.begin(), pin.size(), pin.begin());
  // OpenSSL passes over blanks, misplaced '=' and spare bits.
  if (formatPin(pin) != text) return std::nullopt;
  return pin;
}

}  // namespace braid
