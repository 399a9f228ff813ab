// Words of records that have white space.

#include "ctl/client/host_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/temporary_folder.h"

namespace braid::host_record_test {
namespace {

using Words = std::vector<std::string>;

TEST(HostRecord, WordsAreReadAsTheyWere) {
  for (const Words& words :
       {Words{}, Words{"/run/braid/edge.sock"}, Words{"", "two words", " ", "end"},
        Words{"tab\tline\nend\r\v\f", "\\040", "\\", "a \"quoted\" one", "caf\xc3\xa9"}}) {
    std::stringstream file;
    writeWords(file, words);
    EXPECT_EQ(readWords(file), words);
  }
}

TEST(HostRecord, WordsWithoutQuotationMarksAreReadToo) {
  std::istringstream file("braid0 255 6000 /run/braid/edge.sock \n");
  EXPECT_EQ(readWords(file), (Words{"braid0", "255", "6000", "/run/braid/edge.sock"}));
}

TEST(HostRecord, TheConfigurationsWithARecordAreListed) {
  TemporaryFolder root;
  EXPECT_THAT(HostRecord::configsWith("guard", root.path()), testing::IsEmpty());
  for (const char* config : {"/etc/braid/edge.yaml", "/etc/braid-2/my-edge.yaml"}) {
    std::string name = std::filesystem::path(HostRecord(config, "guard").path()).filename();
    root.write("run/braid-host/" + name, "words\n");
  }
  root.write("run/braid-host/etc-braid-edge.dns", "words\n");
  EXPECT_THAT(HostRecord::configsWith("guard", root.path()),
              testing::ElementsAre("/etc/braid-2/my-edge.yaml", "/etc/braid/edge.yaml"));
}

}  // namespace
}  // namespace braid::host_record_test
