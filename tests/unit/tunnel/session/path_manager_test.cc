#include "tunnel/session/path_manager.h"

#include "tests/unit/tunnel/session/kept_events.h"
#include "tests/unit/tunnel/subflow/subflow_bench.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::path_manager_test {
namespace {

using Side = PathManager::Side;
using Kinds = std::vector<Event::Kind>;

/// `paths` has its own subflows; those of SubflowBench stay empty.
struct PathManagerTest : SubflowBench {
  SessionOptions session;
  ControlFrames controls;
  KeptEvents kept;
  TraceSink* sink = nullptr;
  RecoveryTrace trace{sink, kSession};
  std::optional<PathManager> paths;
  const Route home{1, {}, *Endpoint::parse("192.0.2.1:4433")};
  const Route other{2, {}, *Endpoint::parse("192.0.2.1:4433")};
  const Route six{3, {}, *Endpoint::parse("[2001:db8::1]:4433")};

  void SetUp() override {
    SubflowBench::SetUp();
    begin(Side::kInitiator);
  }
  void begin(Side side) {
    paths.emplace(side, session, controls, dataTracker, kept.in(), trace, random, now);
  }
  void follow() {
    paths->settle(now);
    paths->update(now);
  }
  /// Opens the subflow and lets the peer answer.
  Subflow& use(const std::string& name, const Route& route) {
    EXPECT_TRUE(paths->open(name, name, route, now));
    Subflow& s = paths->subflows()[*paths->subflows().named(name)];
    activate(s);
    follow();
    return s;
  }
  /// Sends control frames on the subflow. Returns their statements about subflows.
  std::vector<SubflowStatusFrame> told(Subflow& on) {
    Datagram out;
    DatagramBuilder build(on, pool.allocate());
    controls.write(build);
    EXPECT_TRUE(build.finish(*sealer, out, now));
    return only<SubflowStatusFrame>(read(out));
  }
  Kinds events() {
    Kinds kinds;
    for (const Event& event : kept.all()) kinds.push_back(event.kind);
    return kinds;
  }
};

// ---- opening and closing of subflows

TEST_F(PathManagerTest, AnInitiatorNumbersItsSubflowsAndAcceptsNone) {
  RecordProperty("rule", "header.subflow");
  session.maxSubflows = 2;
  EXPECT_EQ(paths->accept(5_subflow, home, now), nullptr);
  EXPECT_EQ(use("a", home).id(), 0_subflow);
  EXPECT_EQ(use("b", other).id(), 1_subflow);
  EXPECT_FALSE(paths->open("c", "c", six, now));
  EXPECT_EQ(paths->subflows().size(), 2u);
}

TEST_F(PathManagerTest, AResponderAcceptsSoManyByTheirNumbers) {
  RecordProperty("rule", "header.subflow");
  session.maxSubflows = 2;
  begin(Side::kResponder);
  Subflow* s = paths->accept(5_subflow, home, now);
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(paths->subflows().find(5_subflow), s);
  EXPECT_NE(paths->accept(200_subflow, other, now), nullptr);
  EXPECT_EQ(paths->accept(6_subflow, six, now), nullptr);
}

TEST_F(PathManagerTest, ASubflowThatIsOpenedAgainGoesOnWithItsNumbers) {
  Subflow& a = use("a", home);
  Subflow& b = use("b", other);
  ping(a);
  paths->close("a", now);
  auto frames = told(b);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_FALSE(frames[0].available);
  uint64_t sequence = frames[0].sequence;
  paths->close("a", now);
  EXPECT_FALSE(controls.isWaiting()) << "said once";
  ASSERT_TRUE(paths->open("a", "a", home, now));
  frames = told(b);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].subflow, a.id());
  EXPECT_TRUE(frames[0].available);
  EXPECT_GT(frames[0].sequence, sequence) << "the larger one counts";
  EXPECT_EQ(paths->subflows().size(), 2u);
  EXPECT_EQ(a.sender().sent().next(), 1_pn);
  EXPECT_TRUE(a.hasPathFrame(now)) << "it is to be proven anew";
}

TEST_F(PathManagerTest, OneThatIsClosedBeforeItIsProvenAnewStaysClosed) {
  Subflow& a = use("a", home);
  Subflow& b = use("b", other);
  paths->close("a", now);
  ASSERT_TRUE(paths->open("a", "a", home, now));
  auto frame = a.takePathFrame(now);
  ASSERT_TRUE(frame && frame->challenge);
  told(b);
  paths->close("a", now);
  auto frames = told(b);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_FALSE(frames[0].available);
  now += 10s;
  EXPECT_FALSE(a.hasPathFrame(now));
  a.onPathResponse(frame->challenge->token, frame->route, now);
  EXPECT_FALSE(a.usable());
}

// RFC 9000 section 9.3 and 9.4: a side that has moved itself must also validate the new route.
TEST_F(PathManagerTest, AnotherRouteOfAnOpenSubflowIsProven) {
  Subflow& a = use("a", home);
  EXPECT_FALSE(a.hasPathFrame(now));
  ASSERT_TRUE(paths->open("a", "a", other, now));
  EXPECT_TRUE(a.usable());
  auto frame = a.takePathFrame(now);
  ASSERT_TRUE(frame && frame->challenge);
  EXPECT_EQ(frame->route, other);
}

TEST_F(PathManagerTest, TheRouteThatWasAskedForIsNoNewsWhenThePeerHasMoved) {
  Subflow& a = use("a", home);
  const Route moved{1, {}, *Endpoint::parse("198.51.100.9:4433")};
  a.onPacket(0_pn, true, Ecn::kNotEct, 1200, moved, now);
  auto frame = a.takePathFrame(now);
  ASSERT_TRUE(frame && frame->challenge);
  a.onPathResponse(frame->challenge->token, moved, now);
  follow();
  ASSERT_EQ(a.route(), moved);
  ASSERT_TRUE(paths->open("a", "a", home, now));
  EXPECT_EQ(a.route(), moved);
  EXPECT_TRUE(controls.empty());
}

TEST_F(PathManagerTest, AKeepaliveThatHasNoNumberIsNotDue) {
  Subflow& a = use("a", home);
  while (a.sender().canNumber()) a.onSent(40, true, now);
  now += 3600s;
  paths->onTimer(now);
  EXPECT_GT(paths->nextDeadline(now), now);
}

TEST_F(PathManagerTest, OnlyAnotherRouteIsNewsOfAnOpenSubflow) {
  Subflow& a = use("a", home);
  ASSERT_TRUE(paths->open("a", "a", home, now));
  EXPECT_TRUE(controls.empty());
  ASSERT_TRUE(paths->open("a", "a", other, now));
  EXPECT_EQ(a.route(), other);
  EXPECT_EQ(told(a).size(), 1u);
}

TEST_F(PathManagerTest, NamesThatAreNotThereAreIgnored) {
  paths->close("a", now);
  paths->setPreference("a", {}, {.use = PathUse::kBackup}, nullptr);
  EXPECT_TRUE(controls.empty());
  EXPECT_EQ(paths->subflows().size(), 0u);
}

// ---- what subflows tell

TEST_F(PathManagerTest, TheOperatorHearsOfEveryState) {
  use("a", home);
  EXPECT_EQ(events(), (Kinds{Event::Kind::kSubflowUp}));
  EXPECT_FALSE(paths->onSendError(other, now)) << "nobody is there";
  EXPECT_TRUE(paths->onSendError(home, now));
  now += 100ms;
  EXPECT_LE(paths->nextDeadline(now), now);
  paths->onTimer(now);
  EXPECT_EQ(events().back(), Event::Kind::kSubflowSuspect);
  EXPECT_EQ(kept.all().back().ago, 100ms);
  paths->onTimer(now + 50ms);
  paths->close("a", now + 50ms);
  EXPECT_EQ(events().back(), Event::Kind::kSubflowFailed);
  EXPECT_EQ(events().size(), 3u);
}

TEST_F(PathManagerTest, OfABlipNobodyHears) {
  Subflow& a = use("a", home);
  PacketNumber pn = ping(a);
  EXPECT_TRUE(paths->onSendError(home, now));
  now += 99ms;
  paths->onTimer(now);
  ack(a, pn, pn);
  paths->settle(now);
  EXPECT_TRUE(a.usable());
  EXPECT_EQ(events(), (Kinds{Event::Kind::kSubflowUp}));
  EXPECT_EQ(a.status(now).blips, 1u);
}

TEST_F(PathManagerTest, ControlFramesHearOfTheirFate) {
  Subflow& s = use("a", home);
  controls.add(SkipFrame{1_flow, 5_dsn, 1});
  PacketNumber pn = s.sender().sent().next();
  told(s);
  lose(s, pn);
  EXPECT_FALSE(controls.isWaiting());
  paths->settle(now);
  EXPECT_TRUE(controls.isWaiting()) << "lost: it is to be sent again";
  pn = s.sender().sent().next();
  told(s);
  ack(s, pn, pn);
  paths->settle(now);
  EXPECT_TRUE(controls.empty());
}

// ---- what follows

TEST_F(PathManagerTest, TheTimeWithoutASubflowCountsFromTheLastOne) {
  EXPECT_EQ(paths->unusableSince(), now) << "from the start on";
  use("a", home);
  EXPECT_EQ(paths->unusableSince(), kNever);
  now += 1s;
  paths->close("a", now);
  paths->update(now);
  Time lost = now;
  now += 1s;
  paths->update(now);
  EXPECT_EQ(paths->unusableSince(), lost);
}

TEST_F(PathManagerTest, TheInnerMtuIsWhatEveryPathInUseCarries) {
  session.outerMtu = 1500;
  use("a", home);
  EXPECT_EQ(paths->innerMtu(), 1472 - kDatagramOverhead);
  EXPECT_EQ(events().back(), Event::Kind::kInnerMtu);
  use("six", six);
  EXPECT_EQ(paths->innerMtu(), 1452 - kDatagramOverhead) << "a longer IP header";
  paths->setPreference("six", {.use = PathUse::kBackup}, {}, nullptr);
  paths->update(now);
  EXPECT_EQ(paths->innerMtu(), 1472 - kDatagramOverhead) << "a path that rests does not count";
  session.outerMtu = 0;
  ASSERT_TRUE(use("searching", other).mtu().searching());
  EXPECT_EQ(paths->innerMtu(), 1472 - kDatagramOverhead) << "nor does one that may yet carry more";
}

TEST_F(PathManagerTest, APathBelowTheLeastOfIPv6CarriesSmallPacketsOnly) {
  session.outerMtu = 1500;
  use("a", home);
  session.outerMtu = 1280;
  use("narrow", other);
  EXPECT_EQ(paths->innerMtu(), MtuDiscovery::kBaseDatagram - kDatagramOverhead);
  paths->close("a", now);
  paths->update(now);
  EXPECT_EQ(paths->innerMtu(), 1252 - kDatagramOverhead) << "unless every path is so";
}

TEST_F(PathManagerTest, AnIdleSubflowIsKeptAlive) {
  paths->setKeepalive(1s);
  Subflow& s = use("a", home);
  Time due = s.sender().lastSentAt() + 1s;
  EXPECT_LE(paths->nextDeadline(now), due);
  now = due - 1ms;
  paths->onTimer(now);
  EXPECT_FALSE(s.mustSend());
  now = due;
  paths->onTimer(now);
  EXPECT_TRUE(s.mustSend());
}

TEST_F(PathManagerTest, WithoutKeepaliveItMayBeSilent) {
  paths->setKeepalive(0s);
  Subflow& s = use("a", home);
  now += 3600s;
  paths->onTimer(now);
  EXPECT_FALSE(s.mustSend());
}

}  // namespace
}  // namespace braid::path_manager_test
