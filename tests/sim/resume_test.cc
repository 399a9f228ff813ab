// A machine that was suspended, or resumed from a snapshot, goes on with keys and random numbers
// that another copy of it may have (Tunnel::forgetKeys()).

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/sim/scenario.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/header.h"

namespace braid::sim::resume_test {
namespace {

enum class Who { kEdge, kHub };

struct Resume : testing::TestWithParam<std::tuple<Who, uint64_t>> {
  static Node& goesOn(Scenario& s) {
    return std::get<Who>(GetParam()) == Who::kEdge ? s.edge : s.hub;
  }
  static uint64_t seed() { return std::get<uint64_t>(GetParam()); }
  /// Whether the gateway that goes on sends datagrams of this direction.
  static bool sends(bool up) { return up == (std::get<Who>(GetParam()) == Who::kEdge); }
};
INSTANTIATE_TEST_SUITE_P(Of, Resume,
                         testing::Combine(testing::Values(Who::kEdge, Who::kHub),
                                          testing::Values(1, 2, 3)));

TEST_P(Resume, NothingIsSealedUnderOldKeysAndANewSessionCarriesOn) {
  Scenario s(seed());
  s.path("dsl", kDsl).path("lte", kLte).start();
  TcpFlow& file = s.download(24_MB);
  s.run(1500ms + seed() * 7ms);
  ASSERT_FALSE(file.done());
  std::set<uint32_t> before, after;
  bool gone = false;
  size_t restartNotices = 0;
  s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
    if (!up && isRestartNotice(d.bytes)) ++restartNotices;
    if (!sends(up) || !isSessionDatagram(d.bytes)) return;
    (gone ? after : before).insert(readHeader(d.bytes)->session);
  };
  s.run(100ms);
  ASSERT_EQ(before.size(), 1u);
  gone = true;
  goesOn(s).goOn();
  EXPECT_FALSE(s.isUp());
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 1s)) << s.report();
  ASSERT_TRUE(s.finish(file, 60s)) << s.report();
  EXPECT_EQ(file.wrongBytes(), 0u);
  EXPECT_FALSE(after.empty());
  EXPECT_FALSE(after.contains(*before.begin())) << "a datagram of the old session";
  EXPECT_EQ(restartNotices > 0, std::get<Who>(GetParam()) == Who::kHub)
      << "who cannot be dialed comes by itself, once it is told";
}

// Two copies of one gateway that go on from the same state, each with randomness of its own. The
// stand-in for DTLS has none, so this looks at the nonces of the envelopes.
TEST_P(Resume, TwoCopiesUseNoNonceTwice) {
  auto noncesOf = [](unsigned copy) {
    Scenario s(seed());
    s.path("dsl", kDsl).start().run(1s);
    std::set<Bytes> nonces;
    s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
      if (!sends(up) || !isHandshakeDatagram(d.bytes)) return;
      EXPECT_TRUE(nonces.emplace(d.bytes.begin() + 9, d.bytes.begin() + 21).second);
    };
    goesOn(s).goOn(copy);
    s.run(3s);
    EXPECT_TRUE(s.isUp());
    return nonces;
  };
  std::set<Bytes> first = noncesOf(1), second = noncesOf(2);
  EXPECT_EQ(first, noncesOf(1)) << "or this test would show nothing";
  EXPECT_GE(first.size(), 2u);
  for (const Bytes& nonce : first) EXPECT_FALSE(second.contains(nonce));
}

// A handshake under way was begun with secrets that the other copy has, too.
TEST_P(Resume, AHandshakeUnderWayBeginsAnew) {
  Scenario s(seed());
  s.path("dsl", kDsl);
  std::set<Bytes> ids;  // of handshakes, as the hub answers them
  s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
    if (!up && !d.bytes.empty() && d.bytes[0] == 33)
      ids.emplace(d.bytes.begin() + 1, d.bytes.begin() + 9);
  };
  s.world.start();
  ASSERT_TRUE(s.world.runUntil([&] { return !ids.empty(); }, 5s));
  ASSERT_FALSE(s.isUp());
  goesOn(s).goOn();
  EXPECT_EQ(s.hub.status().handshakes, std::get<Who>(GetParam()) == Who::kHub ? 0u : 1u);
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 15s)) << s.report();
  EXPECT_EQ(ids.size(), 2u);
}

}  // namespace
}  // namespace braid::sim::resume_test
