#pragma once

// Parses YAML text into a plain tree with line and column numbers. Accepts only what a
// configuration needs: mappings with text keys, sequences, and scalars. Anchors, aliases, tags and
// further documents are errors, so a small file cannot grow into a large tree.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid {

/// A value of the file, with the place where it starts.
struct ConfigNode {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMap };
  struct Key {
    std::string text;
    unsigned line = 0, column = 0;
  };
  Kind kind = Kind::kNull;
  unsigned line = 0;              ///< from 1
  unsigned column = 0;            ///< from 1
  std::string text;               ///< kScalar
  std::vector<Key> keys;          ///< kMap: in the order of the file, repeated keys included
  std::vector<ConfigNode> items;  ///< kSequence: items; kMap: values, one for each of `keys`
};

/// Why a text cannot be parsed: one place and its reason.
struct YamlError {
  unsigned line = 0, column = 0;  ///< from 1; line 0: the file as a whole
  std::string problem;
  std::string remedy;
};

/// Limits of a file: the depth of nesting, and the number of values.
inline constexpr size_t kMaxConfigDepth = 16;
inline constexpr size_t kMaxConfigNodes = 50'000;

std::variant<ConfigNode, YamlError> parseYaml(std::string_view text);

}  // namespace braid
