#include "gateway/config/config_node.h"

#include <gtest/gtest.h>

namespace braid::config_node_test {
namespace {

ConfigNode treeOf(std::string_view text) {
  auto result = parseYaml(text);
  auto* error = std::get_if<YamlError>(&result);
  EXPECT_EQ(error, nullptr) << (error ? error->problem : "");
  return error ? ConfigNode{} : std::get<ConfigNode>(result);
}

YamlError errorOf(std::string_view text) {
  auto result = parseYaml(text);
  EXPECT_TRUE(std::holds_alternative<YamlError>(result)) << text;
  auto* error = std::get_if<YamlError>(&result);
  return error ? *error : YamlError{};
}

void expectError(std::string_view text, unsigned line, unsigned column, std::string_view problem) {
  YamlError error = errorOf(text);
  EXPECT_EQ(error.line, line) << text;
  EXPECT_EQ(error.column, column) << text;
  EXPECT_EQ(error.problem, problem) << text;
  EXPECT_FALSE(error.remedy.empty());
}

TEST(ConfigNode, KeepsOrderPlacesAndRepeatedKeys) {
  ConfigNode root = treeOf("a: 1\nb:\n  - x\n  - {c: 'two words', c: ~}\n");
  ASSERT_EQ(root.kind, ConfigNode::Kind::kMap);
  ASSERT_EQ(root.keys.size(), 2u);
  EXPECT_EQ(root.keys[1].text, "b");
  EXPECT_EQ(root.keys[1].line, 2u);
  EXPECT_EQ(root.items[0].text, "1");
  EXPECT_EQ(root.items[0].column, 4u);
  const ConfigNode& list = root.items[1];
  ASSERT_EQ(list.kind, ConfigNode::Kind::kSequence);
  EXPECT_EQ(list.items[0].line, 3u);
  const ConfigNode& map = list.items[1];
  ASSERT_EQ(map.keys.size(), 2u);
  EXPECT_EQ(map.keys[0].text, map.keys[1].text);
  EXPECT_EQ(map.items[0].text, "two words");
  EXPECT_EQ(map.items[1].kind, ConfigNode::Kind::kNull);
}

TEST(ConfigNode, RefusesWhatAFileOfSettingsDoesNotNeed) {
  expectError("", 0, 0, "the file is empty");
  expectError("# only a comment\n", 0, 0, "the file is empty");
  expectError("a: &x 1\nb: *x\n", 1, 4, "anchors (&name) are not supported");
  expectError("a: !!int 1\n", 1, 4, "tags (!name) are not supported");
  expectError("a: 1\n---\nb: 2\n", 2, 1, "a second document starts here");
  expectError("[a]: 1\n", 1, 1, "a key must be plain text");
  expectError("? ~\n: 1\n", 1, 3, "a key must be plain text");
  expectError("a: 1\nb: \x01\n", 2, 4, "control character 1");
}

TEST(ConfigNode, SyntaxErrorsHaveAPlace) {
  YamlError error = errorOf("a: 1\nb: [1, 2\nc: 3\n");
  EXPECT_GE(error.line, 2u);
  EXPECT_TRUE(error.problem.starts_with("not valid YAML: ")) << error.problem;
  expectError("a:\n b: 1\n  c: 2\n", 3, 4,
              "not valid YAML: this line does not fit to those above it");
  expectError("a:\n\tb: 1\n", 2, 1, "a tab is in the indentation");
}

TEST(ConfigNode, DepthAndSizeAreBounded) {
  EXPECT_EQ(
      treeOf(std::string(kMaxConfigDepth, '[') + std::string(kMaxConfigDepth, ']')).items.size(),
      1u);
  EXPECT_EQ(errorOf(std::string(kMaxConfigDepth + 1, '[') + std::string(kMaxConfigDepth + 1, ']'))
                .problem,
            "nested too deeply");
  EXPECT_FALSE(errorOf(std::string(200'000, '[')).problem.empty());
  std::string many = "[";
  for (size_t i = 0; i < kMaxConfigNodes; ++i) many += "1,";
  EXPECT_EQ(errorOf(many + "]").problem, "too many values");
}

}  // namespace
}  // namespace braid::config_node_test
