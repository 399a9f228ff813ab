#include "tunnel/fec/recovery_driver.h"

#include "tests/unit/tunnel/fec/protection_bench.h"
#include "tunnel/fec/fec_receiver.h"
#include "tunnel/order/resequencer.h"
#include "tunnel/wire/frame_payloads.h"

namespace braid::recovery_driver_test {
namespace {

/// A slow path and a fast one. The fast one has carried data, so every policy considers it the
/// better one.
struct ProactiveRecoveryTest : ProtectionBench {
  std::optional<ProactiveRecovery> proactiveRecovery;
  Subflow* slow = nullptr;
  Subflow* fast = nullptr;

  void SetUp() override {
    ProtectionBench::SetUp();
    proactiveRecovery.emplace(*context);
    use("fuso");
    slow = &open(0, 80ms);
    fast = &open(1, 20ms);
    ping(*fast);
  }
  void use(const char* policy) {
    protectOptions.recovery = policy;
    proactiveRecovery->setPolicies(random);
  }
  /// Sends a packet of the flow on the subflow.
  UnitRef carry(Subflow& s, Flow& of, size_t size = 100) {
    UnitRef d = make(of, size);
    send(s, {d});
    proactiveRecovery->onDataSent(*d, now);
    return d;
  }
  UnitRef carry(Subflow& s) { return carry(s, flow); }
  bool idle() { return proactiveRecovery->pollIdle(false, out, now); }
  using Data = std::vector<UnitRef>;
  /// The contents of the newest datagram on the subflow.
  Data newest(const Subflow& s) {
    const SentPacket& p = s.sender().sent().at(s.sender().sent().next() - 1);
    return {p.data.begin(), p.data.begin() + p.dataCount};
  }
};

// ---- copies

TEST_F(ProactiveRecoveryTest, TheOldestPacketOfTheWorstPathIsCopiedOnTheBest) {
  UnitRef first = carry(*slow);
  UnitRef second = carry(*slow);
  UnitRef near = carry(*fast);
  for (UnitRef d : {first, second, near}) {
    ASSERT_TRUE(idle());
    EXPECT_EQ(newest(*fast), Data{d});
    EXPECT_FALSE(d->mayCopy());
    auto frames = only<DataFrame>(read(out));
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].dsn, d->dsn.value());
  }
  EXPECT_FALSE(idle()) << "each once";
  EXPECT_EQ(slow->status(now).protectedPackets, 2u);
  EXPECT_EQ(fast->status(now).copies, 3u);
}

TEST_F(ProactiveRecoveryTest, ACopyLeavesOutWhatHasArrived) {
  UnitRef a = make();
  UnitRef b = make();
  UnitRef c = make();
  PacketNumber pn = send(*slow, {a, b, c});
  dataTracker.onRecovered(b);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), (Data{a, c}));
  EXPECT_EQ(traced.back().kind, TraceEvent::Kind::kCopySent);
  EXPECT_EQ(traced.back().pn, pn);
  EXPECT_EQ(traced.back().onPn, fast->sender().sent().next() - 1);
}

TEST_F(ProactiveRecoveryTest, WhatIsTooLateIsNotCopied) {
  Flow& call = flows.make(false);
  UnitRef late = carry(*slow, call);
  now += 1ms;
  UnitRef timely = carry(*slow, call);
  now += DataTracker::kTimely;
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{timely});
  EXPECT_EQ(late->protection, UnitProtection::kRefused) << "nobody looks at it again";
  EXPECT_FALSE(idle());
}

TEST_F(ProactiveRecoveryTest, APathOfLessThanHalfTheSizeTakesNoProtection) {
  size_t least = (slow->mtu().current() + FecSender::kMaxParityHeader) / 2;
  options.outerMtu = least - 1 + 28;
  Subflow& narrow = open(2, 10ms);
  ping(narrow);
  UnitRef first = carry(*slow);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{first});
  options.outerMtu = least + 28;
  Subflow& wide = open(3, 5ms);
  ping(wide);
  UnitRef second = carry(*slow);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(wide), Data{second}) << "the fastest one";
}

// ---- when

TEST_F(ProactiveRecoveryTest, NewDataGoesFirst) {
  carry(*slow);
  EXPECT_FALSE(proactiveRecovery->pollIdle(true, out, now));
  EXPECT_EQ(proactiveRecovery->idleAgainAt(), kNever);
  EXPECT_TRUE(idle());
}

TEST_F(ProactiveRecoveryTest, ProtectionKeepsToTheWindows) {
  for (Subflow* s : {slow, fast}) {
    while (s->admission().isOpen(now)) carry(*s);
  }
  PacketNumber next = fast->sender().sent().next();
  EXPECT_FALSE(idle());
  EXPECT_EQ(fast->sender().sent().next(), next);
  now += 20ms;
  ack(*fast, 0_pn, next - 1);
  now = std::max(now, fast->admission().opensAt());
  EXPECT_TRUE(idle());
}

TEST_F(ProactiveRecoveryTest, ItIsAskedAgainWhenAPathOpens) {
  auto ceiling = std::make_shared<Pacer>(100);
  ceiling->setRate(static_cast<double>(PathPreference::kMinCeiling));
  for (Subflow* s : {slow, fast}) s->admission().setCeiling(ceiling);
  while (fast->admission().isOpen(now)) carry(*slow);
  EXPECT_FALSE(idle());
  Time opens = fast->admission().opensAt();
  ASSERT_GT(opens, now);
  EXPECT_EQ(proactiveRecovery->idleAgainAt(), opens);
  now = opens;
  EXPECT_TRUE(idle());
}

TEST_F(ProactiveRecoveryTest, APolicyThatWaitsForTheEndOfABurstIsAskedThen) {
  use("adaptive");
  UnitRef d = carry(*slow);
  Time due = now + 80ms / 8;
  EXPECT_FALSE(idle());
  EXPECT_EQ(proactiveRecovery->idleAgainAt(), due);
  now = due;
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{d});
}

TEST_F(ProactiveRecoveryTest, TheTurnOfAFlowProtectsItsOwnData) {
  use("adaptive");
  Flow& other = flows.make();
  UnitRef others = carry(*slow, other);
  UnitRef own = carry(*slow);
  now += 10ms;
  ASSERT_TRUE(proactiveRecovery->pollTurn(flow, out, now));
  EXPECT_EQ(newest(*fast), Data{own});
  EXPECT_FALSE(others->isProtected());
  EXPECT_FALSE(proactiveRecovery->pollTurn(flow, out, now));
  EXPECT_FALSE(proactiveRecovery->pollTurn(flows.make(), out, now)) << "it has sent nothing";
}

// ---- policies

TEST_F(ProactiveRecoveryTest, EachClassHasItsPolicy) {
  protectOptions.recoveryClasses.resize(1);
  protectOptions.recoveryClasses[0].policy = "none";
  use("fuso");
  Flow& spared = flows.make(true, 1);
  UnitRef a = make();
  UnitRef b = make(spared, 100);
  send(*slow, {a, b});
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{a}) << "of the class alone, although both went in one datagram";
  EXPECT_FALSE(idle());
  EXPECT_TRUE(b->mayCopy());
}

TEST_F(ProactiveRecoveryTest, NewPoliciesHoldAtOnce) {
  use("none");
  carry(*slow);
  EXPECT_FALSE(idle());
  use("fuso");
  EXPECT_TRUE(idle());
}

// ---- blocks

TEST_F(ProactiveRecoveryTest, ABlockHoldsWhatIsUnackedOnTheWorstPath) {
  use("cofuso");
  UnitRef first = carry(*slow);
  carry(*slow);
  UnitRef last = carry(*slow);
  UnitRef near = carry(*fast);
  ASSERT_TRUE(idle());
  auto parities = only<ParityFrame>(read(out));
  ASSERT_EQ(parities.size(), 1u);
  BlockDescription block = describe(parities[0], [](SubflowId) { return 0_pn; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{0, first->pn.value(), 3}));
  EXPECT_EQ(first->protection, UnitProtection::kCoded);
  EXPECT_EQ(last->protection, UnitProtection::kCoded);
  EXPECT_FALSE(near->isProtected());
  EXPECT_EQ(proactiveRecovery->blocks(), 1u);
  EXPECT_EQ(fast->status(now).parities, 1u);
  EXPECT_EQ(fast->sender().sent().at(fast->sender().sent().next() - 1).role,
            SentPacket::Role::kParity);
}

TEST_F(ProactiveRecoveryTest, WhatIsCodedIsCopiedNext) {
  use("cofuso");
  UnitRef d = carry(*slow);
  ASSERT_TRUE(idle());
  ASSERT_EQ(d->protection, UnitProtection::kCoded);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{d});
  EXPECT_EQ(proactiveRecovery->blocks(), 1u);
  EXPECT_FALSE(idle()) << "both once";
}

TEST_F(ProactiveRecoveryTest, WhatWasCopiedIsCodedNoMore) {
  UnitRef copied = carry(*slow);
  ASSERT_TRUE(idle());
  ASSERT_EQ(copied->protection, UnitProtection::kCopied);
  use("cofuso");
  UnitRef first = carry(*slow);
  carry(*slow);
  ASSERT_TRUE(idle());
  auto parities = only<ParityFrame>(read(out));
  ASSERT_EQ(parities.size(), 1u);
  BlockDescription block = describe(parities[0], [](SubflowId) { return 0_pn; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{0, first->pn.value(), 2}));
  EXPECT_EQ(copied->protection, UnitProtection::kCopied) << "it is in no block";
}

// Such a peer would receive parities for nothing, because it cannot use them.
TEST_F(ProactiveRecoveryTest, APeerThatKeepsNoSymbolsGetsCopies) {
  RecordProperty("rule", "params.symbols");
  use("cofuso");
  proactiveRecovery->setPeer({.symbols = 0});
  UnitRef first = carry(*slow);
  UnitRef second = carry(*slow);
  for (UnitRef d : {first, second}) {
    ASSERT_TRUE(idle());
    EXPECT_EQ(newest(*fast), Data{d});
    EXPECT_EQ(only<DataFrame>(read(out)).size(), 1u);
  }
  EXPECT_FALSE(idle()) << "each once";
  EXPECT_EQ(proactiveRecovery->blocks(), 0u);
}

TEST_F(ProactiveRecoveryTest, ABlockHasNoMoreSymbolsThanThePeerKeeps) {
  use("cofuso");
  proactiveRecovery->setPeer({.symbols = 2});
  UnitRef first = carry(*slow);
  for (int i = 0; i < 4; ++i) carry(*slow);
  ASSERT_TRUE(idle());
  auto parities = only<ParityFrame>(read(out));
  ASSERT_EQ(parities.size(), 1u);
  BlockDescription block = describe(parities[0], [](SubflowId) { return 0_pn; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{0, first->pn.value(), 2}));
}

TEST_F(ProactiveRecoveryTest, TheReceiveWindowIsThatOfThePeer) {
  use("none");
  proactiveRecovery->setPeer({.heldSpan = 100});
  carry(*slow, flow, 10);
  for (uint64_t i = 1; i < 50; ++i) proactiveRecovery->onNewData(carry(*slow, flow, 10));
  EXPECT_FALSE(proactiveRecovery->hasSecond());
  proactiveRecovery->onNewData(carry(*slow, flow, 10));
  EXPECT_TRUE(proactiveRecovery->hasSecond());
}

// Found by review: with such a peer the window was 0, so each packet delayed itself and was sent
// twice.
TEST_F(ProactiveRecoveryTest, APeerThatHoldsNothingGetsNothingTwiceWithoutNeed) {
  use("none");
  proactiveRecovery->setPeer({.heldSpan = 1});
  EXPECT_FALSE(proactiveRecovery->onNewData(carry(*slow, flow, 10)));
  EXPECT_FALSE(proactiveRecovery->hasSecond());
}

TEST_F(ProactiveRecoveryTest, TheTailOfAParityLeavesAtOnce) {
  use("cofuso");
  carry(*slow, flow, slow->mtu().current() - kDatagramOverhead);
  EXPECT_FALSE(proactiveRecovery->pollTail(out, now));
  ASSERT_TRUE(idle());
  size_t head = only<ParityFrame>(read(out)).at(0).part.size();
  ASSERT_TRUE(proactiveRecovery->pollTail(out, now));
  EXPECT_EQ(only<ParityTailFrame>(read(out)).at(0).offset, head);
  EXPECT_FALSE(proactiveRecovery->pollTail(out, now));
}

TEST_F(ProactiveRecoveryTest, TheDecoderOfThePeerGivesALostPacketBack) {
  use("cofuso");
  UnitRef lost = carry(*slow);
  ASSERT_TRUE(idle());
  FecReceiver receiver(protectOptions, 1500, subflows, trace);
  ASSERT_TRUE(receiver.onParity(only<ParityFrame>(read(out)).at(0), 1_subflow, 1_pn, now));
  BlockDecoder::Restored restored;
  ASSERT_TRUE(receiver.poll(restored));
  DataFrame data = std::get<DataFrame>(*FrameReader(restored.symbol).next());
  EXPECT_EQ(data.dsn, lost->dsn.value());
  EXPECT_EQ(data.payload.size(), 100u);

  proactiveRecovery->onRecovered({SubflowId(restored.subflow), PacketNumber(restored.pn), 1}, now);
  EXPECT_EQ(lost->state, UnitState::kDelivered);
  EXPECT_EQ(traced.back().kind, TraceEvent::Kind::kPacketRecovered);
  EXPECT_EQ(traced.back().pn, PacketNumber(restored.pn));
  EXPECT_FALSE(idle()) << "no copy follows";
}

TEST_F(ProactiveRecoveryTest, WhatIsNoNewsOfThePeerChangesNothing) {
  UnitRef d = carry(*slow);
  proactiveRecovery->onRecovered({9_subflow, d->pn, 1}, now);
  proactiveRecovery->onRecovered({0_subflow, d->pn + 1, 128}, now);
  EXPECT_FALSE(d->isDone());
  EXPECT_TRUE(traced.empty());
  proactiveRecovery->onRecovered({0_subflow, d->pn, 1}, now);
  proactiveRecovery->onRecovered({0_subflow, d->pn, 1}, now);
  EXPECT_EQ(traced.size(), 1u);
}

// ---- duplicates

TEST_F(ProactiveRecoveryTest, ADuplicatingPolicySendsEachPacketTwice) {
  use("redundant");
  UnitRef d = carry(*slow);
  EXPECT_FALSE(proactiveRecovery->onNewData(d)) << "it wants no turn";
  EXPECT_TRUE(proactiveRecovery->hasSecond());
  ASSERT_TRUE(proactiveRecovery->pollSecond(out, now));
  EXPECT_EQ(newest(*fast), Data{d});
  EXPECT_FALSE(proactiveRecovery->hasSecond());
  EXPECT_FALSE(idle()) << "and no more";
}

TEST_F(ProactiveRecoveryTest, ClearGivesBackWhatItHolds) {
  use("redundant");
  UnitRef d = carry(*slow);
  uint32_t refs = d->refs;
  proactiveRecovery->onNewData(d);
  EXPECT_EQ(d->refs, refs + 1);
  proactiveRecovery->clear();
  EXPECT_EQ(d->refs, refs);
  EXPECT_FALSE(proactiveRecovery->hasSecond());
}

TEST_F(ProactiveRecoveryTest, WhatHoldsAFullReceiveWindowBackGoesOverAnotherPath) {
  use("none");
  UnitRef oldest = carry(*slow, flow, 10);
  for (uint64_t i = 1; i < Resequencer::kSpan / 2; ++i)
    proactiveRecovery->onNewData(carry(*slow, flow, 10));
  EXPECT_FALSE(proactiveRecovery->hasSecond());
  proactiveRecovery->onNewData(carry(*slow, flow, 10));
  ASSERT_TRUE(proactiveRecovery->pollSecond(out, now));
  EXPECT_EQ(newest(*fast), Data{oldest});
  proactiveRecovery->onNewData(carry(*slow, flow, 10));
  EXPECT_FALSE(proactiveRecovery->hasSecond()) << "once";
}

}  // namespace
}  // namespace braid::recovery_driver_test
