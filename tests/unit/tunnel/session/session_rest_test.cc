// Sessions at rest (Session::isAtRest()): they wait for an ACK or a deadline and need not be polled
// earlier.

#include <algorithm>
#include <array>
#include <deque>

#include "base/random.h"
#include "tests/unit/tunnel/session/session_pair_test.h"

namespace braid::session_rest_test {
namespace {

/// Two sessions on two links with a delay, a rate and losses, and a driver that sleeps until
/// something is due.
struct SessionRestTest : test::SessionPairTest {
  static constexpr Duration kOneWay = 10ms;
  static constexpr Duration kLongestQueue = 40ms;
  static constexpr double kRate = 2.5e6;  ///< bytes per second
  struct Flight {
    Time at;
    bool toHub;
    Route arrival;
    Datagram datagram;
  };

  Route edgeSecond{2, *Address::parse("198.51.100.2"), edgeRoute.remote};
  Route hubSecond{9, *Address::parse("203.0.113.2"), *Endpoint::parse("198.51.100.2:40000")};
  SessionSecrets secrets;
  Random dice{1};
  double loss = 0;
  std::deque<Flight> flights;
  Time busyUntil[2][2] = {};  ///< by direction and link
  bool isCurious = false;     ///< sessions at rest are polled before their deadlines nevertheless
  uint64_t restsWithData = 0, asked = 0;

  void begin() {
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
    start(secrets);
    edge->openSubflow("b", "lte", {2, {}, edgeRoute.remote}, now);
    run(1s);
  }
  // Used at the start, without delay.
  bool carry(Session& from, Session& to, const Route&) override {
    Datagram d;
    if (!from.pollDatagram(d, now)) return false;
    arrive(to, arrivalOf(&from == edge.get(), d.route), d);
    return true;
  }
  Route arrivalOf(bool toHub, const Route& sent) const {
    if (toHub) return sent.socket == edgeSecond.socket ? hubSecond : hubRoute;
    return sent.remote == hubSecond.remote ? edgeSecond : edgeRoute;
  }
  void arrive(Session& to, const Route& arrival, Datagram& d) {
    std::optional<DatagramHeader> header = readHeader(d.bytes.view());
    ASSERT_TRUE(header);
    if (std::optional<Drop> cause = to.onDatagram(*header, arrival, d.ecn, std::move(d.bytes), now))
      refused.push_back(*cause);
  }
  bool send(Session& from) {
    bool toHub = &from == edge.get();
    Datagram d;
    if (!from.pollDatagram(d, now)) return false;
    Route arrival = arrivalOf(toHub, d.route);
    Time& busy = busyUntil[toHub][arrival == (toHub ? hubSecond : edgeSecond)];
    busy = std::max(busy, now);
    if (cut || busy - now > kLongestQueue || dice.chance(loss)) return true;
    busy += fromSeconds(static_cast<double>(d.bytes.size()) / kRate);
    Flight flight{busy + kOneWay, toHub, arrival, std::move(d)};
    auto later = std::upper_bound(flights.begin(), flights.end(), flight.at,
                                  [](Time at, const Flight& f) { return at < f.at; });
    flights.insert(later, std::move(flight));
    return true;
  }
  static bool waits(const Session& s, Time now) {
    SessionStatus status;
    s.fill(status, now, 64);
    return std::any_of(status.flows.begin(), status.flows.end(),
                       [](const auto& flow) { return flow.queuedBytes > 0; });
  }
  /// Polls a session at rest at some times before `end`, while only its deadline is pending. Not
  /// within 100 us, the minimum time for which a scheduler's decision about a waiting flow holds.
  void ask(Session& s, Time end) {
    if (end - now <= 100us) return;
    Time then = now;
    for (int i = 0; i < 4; ++i) {
      Time at = now + Duration(dice.below(static_cast<uint64_t>((end - now).count())));
      if (at < then) continue;
      then = at;
      Datagram d;
      ++asked;
      EXPECT_FALSE(s.pollDatagram(d, at))
          << "asked " << (end - at).count() << " ns before its deadline";
    }
  }
  /// Polls each session after an input or at its deadline, otherwise only if it is not at rest.
  void drive(Duration d) {
    const std::array<Session*, 2> both{edge.get(), hub.get()};
    std::array<bool, 2> touched{true, true};  // packets were offered before
    std::array<Time, 2> deadline{};
    std::array<int, 2> idle{};  // consecutive due turns without any effect
    for (Time end = now + d; now < end;) {
      edgeEnd.take();
      hubEnd.take();
      for (; !flights.empty() && flights.front().at <= now; flights.pop_front()) {
        Flight& f = flights.front();
        touched[f.toHub] = true;
        arrive(*both[f.toHub], f.arrival, f.datagram);
      }
      for (size_t i = 0; i < both.size(); ++i) {
        Session& s = *both[i];
        if (!touched[i] && s.isAtRest() && deadline[i] > now) continue;
        touched[i] = false;
        if (s.nextDeadline(now) <= now) s.onTimer(now);
        bool speaks = false;
        while (send(s)) speaks = true;
        deadline[i] = s.nextDeadline(now);
        idle[i] = speaks || deadline[i] > now ? 0 : idle[i] + 1;
        ASSERT_LT(idle[i], 100) << "due, and nothing comes of it";
        restsWithData += s.isAtRest() && deadline[i] > now && waits(s, now);
      }
      Time next = std::min({end, std::max(std::min(deadline[0], deadline[1]), now + 1us),
                            flights.empty() ? kNever : flights.front().at});
      for (size_t i = 0; isCurious && i < both.size(); ++i)
        if (both[i]->isAtRest()) ask(*both[i], std::min(next, deadline[i]));
      now = next;
    }
  }
};

TEST_F(SessionRestTest, ASessionWhoseWindowsAreFullIsAtRest) {
  begin();
  cut = true;
  for (int i = 0; i < 500; ++i) offer(*edge, 1, 1400);
  drive(5ms);
  ASSERT_TRUE(waits(*edge, now));
  EXPECT_TRUE(edge->isAtRest());
  EXPECT_GT(restsWithData, 0u);
  Time deadline = edge->nextDeadline(now);
  ASSERT_GT(deadline, now);
  Datagram d;
  EXPECT_FALSE(edge->pollDatagram(d, deadline - 1ns));
}

class Seeds : public SessionRestTest, public testing::WithParamInterface<uint64_t> {
 protected:
  template <typename Names>
  std::string anyOf(const Names& names) {
    return std::string(names[dice.below(std::size(names))]);
  }
  /// Bulk flows, small flows, calls and losses, at rates above and below those of the links.
  void live() {
    dice = Random(GetParam());
    options.recovery = isCurious ? anyOf(kExactRecoveries) : anyOf(kRecoveries);
    options.scheduler = isCurious ? anyOf(kExactSchedulers) : anyOf(kPathSchedulerNames);
    options.controller = dice.chance(0.5) ? "auto" : "newreno";
    if (dice.chance(0.3)) options.repairTime = 100ms;
    loss = dice.chance(0.5) ? 0.03 : 0;
    begin();
    if (!isCurious && dice.chance(0.3)) {
      auto ceiling = std::make_shared<Pacer>();
      ceiling->setRate(1e6);
      edge->setPreference("a", {}, {}, ceiling, now);
    }
    for (int i = 0; i < 300; ++i) {
      Session& from = dice.chance(0.5) ? *edge : *hub;
      uint64_t kind = dice.below(5);
      size_t packets = kind < 2 ? 1 + dice.below(150) : kind == 2 ? 40 : 1 + dice.below(3);
      PacketHint hint;
      if (kind == 1) hint.sign = DatagramSign::kOrdered;
      for (size_t k = 0; k < packets; ++k) {
        auto flow = static_cast<uint16_t>(kind < 2 ? kind : 2 + dice.below(kind == 2 ? 400 : 40));
        offer(from, flow, 1 + dice.below(1400), hint, kind != 1 && kind != 3);
      }
      cut = dice.chance(0.03);
      drive(Duration(dice.below(30'000'000)));
      cut = false;
    }
    drive(10s);
    EXPECT_FALSE(waits(*edge, now));
    EXPECT_FALSE(waits(*hub, now));
    EXPECT_GT(edgeEnd.delivered(), 1000u);
    EXPECT_GT(hubEnd.delivered(), 1000u);
    EXPECT_TRUE(refused.empty());
    EXPECT_GT(restsWithData, 100u);
  }

 private:
  static constexpr std::string_view kRecoveries[] = {
      "adaptive", "none", "fuso", "cofuso", "redundant", "proactive", "reactive", "corrective"};
  /// With FUSO's use of spare windows, and with a ceiling, a datagram may be sent some tenths of a
  /// millisecond before the announced deadline. The policies listed here are exact.
  static constexpr std::string_view kExactRecoveries[] = {"adaptive", "none"};
  static constexpr std::string_view kExactSchedulers[] = {"earliest", "ecf"};
};

TEST_P(Seeds, ASessionAtRestSendsNothingBeforeItsDeadlineHoweverOftenItIsAsked) {
  isCurious = true;
  live();
  EXPECT_GT(asked, 1000u);
}

TEST_P(Seeds, SessionsThatAreAskedOnlyAtTheirDeadlinesBringAllToItsEnd) {
  live();
}

INSTANTIATE_TEST_SUITE_P(Session, Seeds, testing::Range<uint64_t>(1, 11));

/// A part of a memory quota that others use.
struct Others final : QuotaUser {
  using QuotaUser::QuotaUser;
  using QuotaUser::setUsed;
  void reclaim() override {}
};

// Others free the memory. The session learns of it only by being polled, whether or not it has data
// in flight.
TEST_F(SessionRestTest, ASessionThatHasNoRoomDoesNotRest) {
  begin();
  MemoryQuota& quota = pool.quota(PacketUse::kSent);
  std::vector<std::unique_ptr<Others>> others;
  for (size_t i = 0; i <= quota.limit(); ++i)
    others.push_back(std::make_unique<Others>(&quota, Reclaimable::kNo));
  for (bool isOnItsWay : {false, true}) {
    uint64_t before = hubEnd.delivered();
    cut = isOnItsWay;
    if (isOnItsWay) offer(*edge, 1);
    drive(1ms);
    others[0]->setUsed(quota.limit() - quota.limit() / 4);
    offer(*edge, 1);
    drive(5ms);
    EXPECT_EQ(hubEnd.delivered(), before);
    EXPECT_FALSE(edge->isAtRest()) << isOnItsWay;
    others[0]->setUsed(0);
    cut = false;
    drive(1s);
    EXPECT_EQ(hubEnd.delivered(), before + 1 + isOnItsWay);
    EXPECT_TRUE(edge->isAtRest());
  }
}

}  // namespace
}  // namespace braid::session_rest_test
