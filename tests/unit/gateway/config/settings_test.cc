// The table of settings: it is whole, and the documents are made from it.

#include "gateway/config/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace braid::settings_test {
namespace {

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Writes what the document must say to a file beside the test, to be copied.
void expectDocument(const std::string& committed, const std::string& expected,
                    const std::string& name) {
  if (committed == expected) return;
  std::string copy = ::testing::TempDir() + name;
  std::ofstream(copy) << expected;
  ADD_FAILURE() << name << " differs from the table of settings; what it must be is in " << copy;
}

TEST(Settings, AreThoseOfTheReference) {
  expectDocument(contentOf(BRAID_DOCS "/reference.md"), settingsReference(), "reference.md");
}

TEST(Settings, AreThoseOfTheManualPage) {
  std::string page = contentOf(BRAID_DOCS "/man/braid.yaml.5");
  size_t begin = page.find(".Sh SECTIONS\n"), end = page.find(".Sh FILES\n");
  ASSERT_LT(begin, end);
  ASSERT_NE(end, std::string::npos);
  expectDocument(page.substr(begin, end - begin), settingsManual(), "braid.yaml.5.sections");
}

TEST(Settings, AreThoseOfOpenWrt) {
  std::string script = contentOf(BRAID_DOCS "/../packaging/openwrt/braid/files/uci2yaml.sh");
  EXPECT_NE(script.find("\n" + settingsUci()), std::string::npos)
      << "uci2yaml.sh lacks this function:\n"
      << settingsUci();
}

TEST(Settings, HaveUniquePathsAndSayWhatTheyMean) {
  std::set<std::string> paths;
  for (const Setting& each : settings()) {
    EXPECT_TRUE(paths.insert(each.path()).second) << each.path();
    EXPECT_GE(each.help.size(), 5u) << each.path();
    EXPECT_FALSE(each.help.ends_with('.')) << each.path();
    EXPECT_FALSE(each.value.values.empty()) << each.path();
  }
  EXPECT_GT(paths.size(), 100u);
}

TEST(Settings, FormerNamesLeadToThePresentOnes) {
  EXPECT_EQ(renamedTo("tunnel", "hold-limit"), "reorder-limit");
  EXPECT_EQ(renamedTo("streams", "hold-limit"), "receive-window");
  EXPECT_EQ(renamedTo("tunnel", "reorder-limit"), "");
  EXPECT_EQ(renamedTo("", ""), "");
  for (const Setting& each : settings())
    EXPECT_TRUE(renamedTo(each.section, each.key).empty()) << each.path();
}

// Otherwise a changed value would be neither applied nor refused.
TEST(Settings, ThoseThatNeedARestartCanBeCompared) {
  size_t restarts = 0;
  for (const Setting& each : settings()) {
    if (each.change != SettingChange::kRestart) continue;
    ++restarts;
    EXPECT_TRUE(each.value.show != nullptr) << each.path();
  }
  EXPECT_GT(restarts, 15u);
}

// The reader takes no exponent.
TEST(Settings, AFractionIsShownAsItIsRead) {
  auto row = std::ranges::find(settings(), "recovery.alpha", &Setting::path);
  ASSERT_NE(row, settings().end());
  Config config;
  config.tunnel.recoveryOptions.alpha = 0.00001;
  EXPECT_EQ(row->value.show(config), "0.00001");
  config.tunnel.recoveryOptions.alpha = 5e-324;
  EXPECT_EQ(row->value.show(config).size(), 326u);
}

}  // namespace
}  // namespace braid::settings_test
