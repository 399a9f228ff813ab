#include "tunnel/session/path_roles.h"

#include "tests/unit/tunnel/session/kept_events.h"
#include "tests/unit/tunnel/subflow/subflow_bench.h"

namespace braid::path_roles_test {
namespace {

constexpr PathPreference kNormal{};
constexpr PathPreference kMetered{.use = PathUse::kMetered};
constexpr PathPreference kBackup{.use = PathUse::kBackup};

struct PathRolesTest : SubflowBench {
  ControlFrames controls;
  KeptEvents events;
  PathRoles initiator{PathRoles::Side::kInitiator, 1472, subflows, controls, events.in()};
  PathRoles responder{PathRoles::Side::kResponder, 1472, subflows, controls, events.in()};

  Subflow& use(uint8_t id, const PathPreference& preference) {
    Subflow& s = open(id);
    initiator.setPreference(s, preference, preference, nullptr);
    initiator.onChange();
    initiator.update(now);
    return s;
  }
  std::vector<SubflowPreferenceFrame> told() {
    Datagram out;
    DatagramBuilder build(*subflows.find(0_subflow), pool.allocate());
    controls.write(build);
    EXPECT_TRUE(build.finish(*sealer, out, now));
    return only<SubflowPreferenceFrame>(read(out));
  }
};

TEST_F(PathRolesTest, TheBestUsablePathsCarryTheData) {
  Subflow& backup = use(0, kBackup);
  EXPECT_EQ(backup.admission().role(), PathRole::kAll) << "there is no better one";
  Subflow& normal = use(1, kNormal);
  EXPECT_EQ(normal.admission().role(), PathRole::kAll);
  EXPECT_EQ(backup.admission().role(), PathRole::kNone);
  ASSERT_EQ(events.all().size(), 1u);
  EXPECT_EQ(events.all()[0].kind, Event::Kind::kSubflowRole);
  normal.close(now);
  EXPECT_EQ(backup.admission().role(), PathRole::kNone) << "not before update()";
  initiator.onChange();
  initiator.update(now);
  EXPECT_EQ(backup.admission().role(), PathRole::kAll);
}

TEST_F(PathRolesTest, AMeteredPathHelpsWhenTheNormalOnesAreLongTooLittle) {
  use(0, kNormal);
  Subflow& metered = use(1, kMetered);
  EXPECT_EQ(metered.admission().role(), PathRole::kNone);
  EXPECT_FALSE(initiator.mayOverflow(now));
  now += OverflowHysteresis::kFull;
  EXPECT_TRUE(initiator.mayOverflow(now)) << "waiting since long";
  EXPECT_EQ(metered.admission().role(), PathRole::kOverflow);
  initiator.onDrained(now);
  now = initiator.nextDeadline(now);
  ASSERT_NE(now, kNever);
  initiator.onTimer(now);
  EXPECT_EQ(metered.admission().role(), PathRole::kNone);
}

TEST_F(PathRolesTest, WithoutMeteredPathsNothingOverflows) {
  use(0, kNormal);
  use(1, kBackup);
  EXPECT_FALSE(initiator.mayOverflow(now));
  now += 10s;
  EXPECT_FALSE(initiator.mayOverflow(now));
  EXPECT_EQ(initiator.nextDeadline(now), kNever);
}

TEST_F(PathRolesTest, ThePeerIsToldWhatIsNotTheDefault) {
  use(0, kNormal);
  EXPECT_EQ(initiator.wishFor(subflows[0]), nullptr);
  EXPECT_TRUE(controls.empty());
  use(1, kBackup);
  ASSERT_NE(initiator.wishFor(subflows[1]), nullptr);
  auto frames = told();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].subflow, 1_subflow);
  EXPECT_EQ(frames[0].preference, kBackup);
  initiator.setPreference(subflows[1], kNormal, kNormal, nullptr);
  frames = told();
  ASSERT_EQ(frames.size(), 1u) << "back to the default, which is news";
  EXPECT_EQ(frames[0].preference, kNormal);
}

TEST_F(PathRolesTest, OnlyAUsableSubflowIsAnnounced) {
  open(0);
  Subflow& s = add(1);
  initiator.setPreference(s, kBackup, kBackup, nullptr);
  EXPECT_TRUE(controls.empty()) << "its challenges carry the wish";
  activate(s);
  initiator.onUsable(s);
  EXPECT_EQ(told().size(), 1u);
}

TEST_F(PathRolesTest, AResponderFollowsTheInitiator) {
  Subflow& s = open(0);
  initiator.onPeerPreference({0_subflow, 1, kBackup});
  EXPECT_EQ(s.preference(), kNormal) << "the initiator takes no wishes";
  responder.onPeerPreference({0_subflow, 1, kBackup});
  responder.onPeerPreference({7_subflow, 1, kBackup});
  EXPECT_EQ(s.preference(), kBackup);
}

TEST_F(PathRolesTest, SubflowsOfAnUplinkShareItsCeiling) {
  Subflow& a = open(0);
  Subflow& b = open(1);
  PathPreference slow{.uplink = 3, .ceiling = PathPreference::kMinCeiling};
  responder.onPeerPreference({0_subflow, 1, slow});
  responder.onPeerPreference({1_subflow, 1, slow});
  ASSERT_TRUE(a.admission().isOpen(now) && b.admission().isOpen(now));
  for (int i = 0; i < 12; ++i) send(a, {make(1300)});
  EXPECT_GT(b.admission().opensAt(), now) << "what one sends the other may not";
}

}  // namespace
}  // namespace braid::path_roles_test
