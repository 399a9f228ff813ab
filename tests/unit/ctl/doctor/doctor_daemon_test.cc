// What the doctor says of a running daemon's figures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ctl/doctor/doctor.h"

namespace braid::doctor_daemon_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> found(const nlohmann::json& traffic) {
  DoctorReport report;
  judgeOffloads(traffic, report);
  std::vector<std::string> out;
  for (const Finding& f : report.findings())
    if (f.check == "offloads") out.push_back(f.what + "; " + f.why + "; " + f.remedy);
  return out;
}

TEST(DoctorDaemon, OffloadsThatWorkAreNoFinding) {
  EXPECT_THAT(found({{"socket_merging_stopped", 0u},
                     {"socket_merged_damaged", 3u},
                     {"device_runs_refused", 0u}}),
              IsEmpty());
}

TEST(DoctorDaemon, DamagedRunsAndRefusedRunsAreNamedWithWhatHelps) {
  EXPECT_THAT(found({{"socket_merging_stopped", 1u}, {"socket_merged_damaged", 31u}}),
              ElementsAre(AllOf(HasSubstr("31 datagrams came damaged"), HasSubstr("ethtool"))));
  EXPECT_THAT(found({{"device_runs_refused", 2u}}),
              ElementsAre(HasSubstr("refuses several packets in one write")));
}

}  // namespace
}  // namespace braid::doctor_daemon_test
