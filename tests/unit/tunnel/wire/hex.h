#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid::test {

/// The bytes of these hexadecimal digits; spaces are ignored.
inline std::vector<uint8_t> fromHex(std::string text) {
  std::erase(text, ' ');
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return out;
}

}  // namespace braid::test
