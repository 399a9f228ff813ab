#include "ctl/views/format.h"

#include <gtest/gtest.h>

#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid::fields_test {
namespace {

using nlohmann::json;

TEST(Fields, ACellIsInTheFormatOfItsUnit) {
  json subflow = {{"id", 3},         {"uplink", "wifi"},        {"srtt_ms", 12.5},
                  {"timeouts", 4},   {"window_bytes", 65536},   {"delivery_bytes_per_s", 11.65e6},
                  {"resting", true}, {"loss_estimate", 0.0125}, {"burst_packets", 1.5}};
  EXPECT_EQ(cell<&SubflowStatus::id>(subflow), "3");
  EXPECT_EQ(cell<&SubflowStatus::uplink>(subflow), "wifi");
  EXPECT_EQ(cell<&SubflowStatus::srtt>(subflow), "12.5 ms");
  EXPECT_EQ(cell<&SubflowStatus::timeouts>(subflow), "4");
  EXPECT_EQ(cell<&SubflowStatus::window>(subflow), "65.5 kB");
  EXPECT_EQ(cell<&SubflowStatus::deliveryRate>(subflow), "93.2 Mbit/s");
  EXPECT_EQ(cell<&SubflowStatus::resting>(subflow), "yes");
  EXPECT_EQ(cell<&SubflowStatus::lossRate>(subflow), "1.25 %");
  EXPECT_EQ(cell<&SubflowStatus::burst>(subflow), "1.50");
  EXPECT_EQ(cell<&PeerStatus::age>(json{{"age_s", 200}}), "3 min 20 s");
  double until = 1'782'864'000;
  EXPECT_EQ(cell<&MeterPeriodStatus::until>(json{{"until_unix_s", until}}), formatDate(until));
}

TEST(Fields, WhatIsMissingOrStrangeShowsAsADash) {
  for (const json& strange :
       {json::object(), json(7), json{{"srtt_ms", "x"}, {"timeouts", json::array()}}}) {
    EXPECT_EQ(cell<&SubflowStatus::srtt>(strange), "-");
    EXPECT_EQ(cell<&SubflowStatus::timeouts>(strange), "-");
    EXPECT_EQ(cell<&SubflowStatus::uplink>(strange), "-");
    EXPECT_EQ(cell<&SubflowStatus::burst>(strange), "-");
  }
}

}  // namespace
}  // namespace braid::fields_test
