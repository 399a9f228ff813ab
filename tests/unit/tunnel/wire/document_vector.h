#pragma once

// Reads the test vectors of docs/protocol.md. Files that include this are compiled with BRAID_DOCS.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/tunnel/wire/hex.h"

namespace braid::test {

using Values = std::map<std::string, std::vector<uint8_t>>;

/// The values of the vector `id`, for example V1: the lines " name = hex" and " more hex" behind
/// "**V1** ...".
inline Values valuesOf(const std::string& id) {
  Values values;
  std::ifstream document(BRAID_DOCS "/protocol.md");
  bool inside = false;
  std::vector<uint8_t>* last = nullptr;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("**V")) inside = line.starts_with("**" + id + "**");
    if (!inside || !line.starts_with("    ")) continue;
    size_t equals = line.find('=');
    if (equals != std::string::npos) last = &values[line.substr(4, line.find(' ', 4) - 4)];
    if (!last) continue;
    std::vector<uint8_t> more = fromHex(line.substr(equals == std::string::npos ? 0 : equals + 1));
    last->insert(last->end(), more.begin(), more.end());
  }
  if (values.empty()) throw std::runtime_error("docs/protocol.md has no vector " + id);
  return values;
}

/// One vector, which a test reproduces. The test must request each of its values.
class Vector {
 public:
  explicit Vector(const std::string& id) : values_(valuesOf(id)) {
    testing::Test::RecordProperty("vector", id);
  }
  ~Vector() {
    for (const auto& [name, value] : values_)
      EXPECT_TRUE(used_.contains(name)) << name << " was not compared";
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;

  std::vector<uint8_t> operator[](const std::string& name) {
    used_.insert(name);
    auto at = values_.find(name);
    if (at == values_.end()) throw std::runtime_error("docs/protocol.md lacks " + name);
    return at->second;
  }

 private:
  Values values_;
  std::set<std::string> used_;
};

template <size_t N>
std::array<uint8_t, N> arrayOf(const std::vector<uint8_t>& bytes) {
  std::array<uint8_t, N> out{};
  EXPECT_EQ(bytes.size(), N);
  std::copy_n(bytes.begin(), std::min(N, bytes.size()), out.begin());
  return out;
}

}  // namespace braid::test
