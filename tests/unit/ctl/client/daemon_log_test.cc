// The daemon's lines in the logs of systemd and OpenWrt, and which of them tells why it failed.

#include "ctl/client/daemon_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::daemon_log_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DaemonLog, JournalLinesHaveTheirPriority) {
  EXPECT_THAT(parseJournal("{\"PRIORITY\":\"2\",\"MESSAGE\":\"cannot \\u001b[2J bind\"}\n"
                           "no JSON\n"
                           "{\"PRIORITY\":\"9\",\"MESSAGE\":\"text\"}\n"
                           "{\"MESSAGE\":[104,105]}\n"
                           "{\"PRIORITY\":\"6\",\"MESSAGE\":\"last\"}"),
              ElementsAre(LogLine{2, "cannot ?[2J bind"}, LogLine{6, "text"}, LogLine{6, "last"}));
  EXPECT_THAT(parseJournal(""), IsEmpty());
}

TEST(DaemonLog, OpenWrtsLogHasThoseOfTheServiceAndOfItsDaemon) {
  const std::string at = "Mon Nov 30 02:16:15 2026 ";
  EXPECT_THAT(
      parseLogread(
          at + "daemon.err sh[71]: 2026-11-30 02:16:15.123 warning: no answer: compare\n" + at +
          "daemon.err sh[72]: other program: failed\n" + at + "kern.info kernel: braid0: up\n" +
          at + "daemon.err braid: /var/etc/braid/braid.yaml:3:1: unknown key; remove it\n" + at +
          "daemon.notice braid: not started: no gateway has 'option enabled 1'\n" + at +
          "daemon.err braidd[7]: 2026-11-30 02:16:16.123 critical: cannot bind\n" + "short"),
      ElementsAre(LogLine{4, "no answer: compare"},
                  LogLine{3, "/var/etc/braid/braid.yaml:3:1: unknown key; remove it"},
                  LogLine{6, "not started: no gateway has 'option enabled 1'"},
                  LogLine{2, "cannot bind"}));
}

TEST(DaemonLog, TheLastErrorDecidesOrElseTheLastWarning) {
  const LogLine first{3, "error 1"}, second{2, "error 2"}, warning{4, "warning"}, more{4, "more"},
      info{6, "info"};
  EXPECT_EQ(decisiveLine({first, second, warning, info}), "error 2");
  EXPECT_EQ(decisiveLine({warning, more, info}), "more");
  EXPECT_EQ(decisiveLine({info}), "");
  EXPECT_EQ(decisiveLine({}), "");
}

}  // namespace
}  // namespace braid::daemon_log_test
