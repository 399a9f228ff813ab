#include "tunnel/protect/protector.h"

#include "tests/unit/tunnel/protect/protection_bench.h"
#include "tunnel/lane/resequencer.h"
#include "tunnel/protect/block_receiver.h"
#include "tunnel/wire/parity_symbols.h"

namespace braid::protector_test {
namespace {

/// A slow path and a fast one that has carried something, so that every policy takes it for the better one.
struct ProtectorTest : ProtectionBench {
  std::optional<Protector> protector;
  Subflow* slow = nullptr;
  Subflow* fast = nullptr;

  void SetUp() override {
    ProtectionBench::SetUp();
    protector.emplace(*context);
    use("fuso");
    slow = &open(0, 80ms);
    fast = &open(1, 20ms);
    ping(*fast);
  }
  void use(const char* policy) {
    protectOptions.recovery = policy;
    protector->setPolicies(random);
  }
  /// A packet of the flow leaves on the subflow.
  const Datum* carry(Subflow& s, Flow& of, size_t size = 100) {
    const Datum* d = make(of, size);
    send(s, {d});
    protector->onDataSent(*d, now);
    return d;
  }
  const Datum* carry(Subflow& s) { return carry(s, flow); }
  bool idle() { return protector->pollIdle(false, out, now); }
  using Data = std::vector<const Datum*>;
  /// What the newest datagram on the subflow holds.
  Data newest(const Subflow& s) {
    const SentPacket& p = s.sender().sent().at(s.sender().sent().next() - 1);
    return {p.data.begin(), p.data.begin() + p.dataCount};
  }
};

// ---- copies

TEST_F(ProtectorTest, TheOldestPacketOfTheWorstPathIsCopiedOnTheBest) {
  const Datum* first = carry(*slow);
  const Datum* second = carry(*slow);
  const Datum* near = carry(*fast);
  for (const Datum* d : {first, second, near}) {
    ASSERT_TRUE(idle());
    EXPECT_EQ(newest(*fast), Data{d});
    EXPECT_TRUE(d->copied);
    auto frames = only<DataFrame>(read(out));
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].dsn, d->dsn.value());
  }
  EXPECT_FALSE(idle()) << "each once";
  EXPECT_EQ(slow->status(now).protectedPackets, 2u);
  EXPECT_EQ(fast->status(now).copies, 3u);
}

TEST_F(ProtectorTest, ACopyLeavesOutWhatHasArrived) {
  const Datum* a = make();
  const Datum* b = make();
  const Datum* c = make();
  PacketNumber pn = send(*slow, {a, b, c});
  ledger.onRecovered(b);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), (Data{a, c}));
  EXPECT_EQ(traced.back().kind, TraceEvent::Kind::kCopySent);
  EXPECT_EQ(traced.back().pn, pn);
  EXPECT_EQ(traced.back().onPn, fast->sender().sent().next() - 1);
}

TEST_F(ProtectorTest, WhatIsTooLateIsNotCopied) {
  Flow& call = flows.make(false);
  const Datum* late = carry(*slow, call);
  now += 1ms;
  const Datum* timely = carry(*slow, call);
  now += DataLedger::kTimely;
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{timely});
  EXPECT_TRUE(late->copied) << "nobody looks at it again";
  EXPECT_FALSE(idle());
}

TEST_F(ProtectorTest, APathOfLessThanHalfTheSizeTakesNoProtection) {
  size_t least = (slow->mtu().current() + BlockSender::kMaxParityHeader) / 2;
  options.outerMtu = least - 1 + 28;
  Subflow& narrow = open(2, 10ms);
  ping(narrow);
  const Datum* first = carry(*slow);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{first});
  options.outerMtu = least + 28;
  Subflow& wide = open(3, 5ms);
  ping(wide);
  const Datum* second = carry(*slow);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(wide), Data{second}) << "the fastest one";
}

// ---- when

TEST_F(ProtectorTest, NewDataGoesFirst) {
  carry(*slow);
  EXPECT_FALSE(protector->pollIdle(true, out, now));
  EXPECT_EQ(protector->idleAgainAt(), kNever);
  EXPECT_TRUE(idle());
}

TEST_F(ProtectorTest, ProtectionKeepsToTheWindows) {
  for (Subflow* s : {slow, fast}) {
    while (s->gate().isOpen(now)) carry(*s);
  }
  PacketNumber next = fast->sender().sent().next();
  EXPECT_FALSE(idle());
  EXPECT_EQ(fast->sender().sent().next(), next);
  now += 20ms;
  ack(*fast, 0_pn, next - 1);
  now = std::max(now, fast->gate().opensAt());
  EXPECT_TRUE(idle());
}

TEST_F(ProtectorTest, ItIsAskedAgainWhenAPathOpens) {
  auto ceiling = std::make_shared<Pacer>(100);
  ceiling->setRate(static_cast<double>(PathPreference::kMinCeiling));
  for (Subflow* s : {slow, fast}) s->gate().setCeiling(ceiling);
  while (fast->gate().isOpen(now)) carry(*slow);
  EXPECT_FALSE(idle());
  Time opens = fast->gate().opensAt();
  ASSERT_GT(opens, now);
  EXPECT_EQ(protector->idleAgainAt(), opens);
  now = opens;
  EXPECT_TRUE(idle());
}

TEST_F(ProtectorTest, APolicyThatWaitsForTheEndOfABurstIsAskedThen) {
  use("adaptive");
  const Datum* d = carry(*slow);
  Time due = now + 80ms / 8;
  EXPECT_FALSE(idle());
  EXPECT_EQ(protector->idleAgainAt(), due);
  now = due;
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{d});
}

TEST_F(ProtectorTest, TheTurnOfAFlowProtectsItsOwnData) {
  use("adaptive");
  Flow& other = flows.make();
  const Datum* others = carry(*slow, other);
  const Datum* own = carry(*slow);
  now += 10ms;
  ASSERT_TRUE(protector->pollTurn(flow, out, now));
  EXPECT_EQ(newest(*fast), Data{own});
  EXPECT_FALSE(others->copied || others->coded);
  EXPECT_FALSE(protector->pollTurn(flow, out, now));
  EXPECT_FALSE(protector->pollTurn(flows.make(), out, now)) << "it has sent nothing";
}

// ---- policies

TEST_F(ProtectorTest, EachClassHasItsPolicy) {
  protectOptions.recoveryClasses.resize(1);
  protectOptions.recoveryClasses[0].policy = "none";
  use("fuso");
  Flow& spared = flows.make(true, 1);
  const Datum* a = make();
  const Datum* b = make(spared, 100);
  send(*slow, {a, b});
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{a}) << "of the class alone, although both went in one datagram";
  EXPECT_FALSE(idle());
  EXPECT_FALSE(b->copied);
}

TEST_F(ProtectorTest, NewPoliciesHoldAtOnce) {
  use("none");
  carry(*slow);
  EXPECT_FALSE(idle());
  use("fuso");
  EXPECT_TRUE(idle());
}

// ---- blocks

TEST_F(ProtectorTest, ABlockHoldsWhatIsUnackedOnTheWorstPath) {
  use("cofuso");
  const Datum* first = carry(*slow);
  carry(*slow);
  const Datum* last = carry(*slow);
  const Datum* near = carry(*fast);
  ASSERT_TRUE(idle());
  auto parities = only<ParityFrame>(read(out));
  ASSERT_EQ(parities.size(), 1u);
  BlockDescription block = describe(parities[0], [](SubflowId) { return 0_pn; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{0, first->pn.value(), 3}));
  EXPECT_TRUE(first->coded && last->coded);
  EXPECT_FALSE(near->coded);
  EXPECT_EQ(protector->blocks(), 1u);
  EXPECT_EQ(fast->status(now).parities, 1u);
  EXPECT_EQ(fast->sender().sent().at(fast->sender().sent().next() - 1).role, SentPacket::Role::kParity);
}

TEST_F(ProtectorTest, WhatIsCodedIsCopiedNext) {
  use("cofuso");
  const Datum* d = carry(*slow);
  ASSERT_TRUE(idle());
  ASSERT_TRUE(d->coded);
  ASSERT_TRUE(idle());
  EXPECT_EQ(newest(*fast), Data{d});
  EXPECT_EQ(protector->blocks(), 1u);
  EXPECT_FALSE(idle()) << "both once";
}

TEST_F(ProtectorTest, WhatWasCopiedIsCodedNoMore) {
  const Datum* copied = carry(*slow);
  ASSERT_TRUE(idle());
  ASSERT_TRUE(copied->copied);
  use("cofuso");
  const Datum* first = carry(*slow);
  carry(*slow);
  ASSERT_TRUE(idle());
  auto parities = only<ParityFrame>(read(out));
  ASSERT_EQ(parities.size(), 1u);
  BlockDescription block = describe(parities[0], [](SubflowId) { return 0_pn; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{0, first->pn.value(), 2}));
  EXPECT_FALSE(copied->coded);
}

// It would pay for parities and throw them away.
TEST_F(ProtectorTest, APeerThatKeepsNoSymbolsGetsCopies) {
  RecordProperty("rule", "params.symbols");
  use("cofuso");
  protector->setPeer({.symbols = 0});
  const Datum* first = carry(*slow);
  const Datum* second = carry(*slow);
  for (const Datum* d : {first, second}) {
    ASSERT_TRUE(idle());
    EXPECT_EQ(newest(*fast), Data{d});
    EXPECT_EQ(only<DataFrame>(read(out)).size(), 1u);
  }
  EXPECT_FALSE(idle()) << "each once";
  EXPECT_EQ(protector->blocks(), 0u);
}

TEST_F(ProtectorTest, ABlockHasNoMoreSymbolsThanThePeerKeeps) {
  use("cofuso");
  protector->setPeer({.symbols = 2});
  const Datum* first = carry(*slow);
  for (int i = 0; i < 4; ++i) carry(*slow);
  ASSERT_TRUE(idle());
  auto parities = only<ParityFrame>(read(out));
  ASSERT_EQ(parities.size(), 1u);
  BlockDescription block = describe(parities[0], [](SubflowId) { return 0_pn; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{0, first->pn.value(), 2}));
}

TEST_F(ProtectorTest, TheReceiveWindowIsThatOfThePeer) {
  use("none");
  protector->setPeer({.heldSpan = 100});
  carry(*slow, flow, 10);
  for (uint64_t i = 1; i < 50; ++i) protector->onNewData(carry(*slow, flow, 10));
  EXPECT_FALSE(protector->hasSecond());
  protector->onNewData(carry(*slow, flow, 10));
  EXPECT_TRUE(protector->hasSecond());
}

// Found by review: the window was none then, and each packet held itself back and went twice.
TEST_F(ProtectorTest, APeerThatHoldsNothingGetsNothingTwiceWithoutNeed) {
  use("none");
  protector->setPeer({.heldSpan = 1});
  EXPECT_FALSE(protector->onNewData(carry(*slow, flow, 10)));
  EXPECT_FALSE(protector->hasSecond());
}

TEST_F(ProtectorTest, TheTailOfAParityLeavesAtOnce) {
  use("cofuso");
  carry(*slow, flow, slow->mtu().current() - kDatagramOverhead);
  EXPECT_FALSE(protector->pollTail(out, now));
  ASSERT_TRUE(idle());
  size_t head = only<ParityFrame>(read(out)).at(0).part.size();
  ASSERT_TRUE(protector->pollTail(out, now));
  EXPECT_EQ(only<ParityTailFrame>(read(out)).at(0).offset, head);
  EXPECT_FALSE(protector->pollTail(out, now));
}

TEST_F(ProtectorTest, TheDecoderOfThePeerGivesALostPacketBack) {
  use("cofuso");
  const Datum* lost = carry(*slow);
  ASSERT_TRUE(idle());
  BlockReceiver receiver(protectOptions, 1500, subflows, trace);
  ASSERT_TRUE(receiver.onParity(only<ParityFrame>(read(out)).at(0), 1_subflow, 1_pn, now));
  BlockDecoder::Restored restored;
  ASSERT_TRUE(receiver.poll(restored));
  DataFrame data = std::get<DataFrame>(*FrameReader(restored.symbol).next());
  EXPECT_EQ(data.dsn, lost->dsn.value());
  EXPECT_EQ(data.payload.size(), 100u);

  protector->onRecovered({SubflowId(restored.subflow), PacketNumber(restored.pn), 1}, now);
  EXPECT_TRUE(lost->delivered);
  EXPECT_EQ(traced.back().kind, TraceEvent::Kind::kPacketRecovered);
  EXPECT_EQ(traced.back().pn, PacketNumber(restored.pn));
  EXPECT_FALSE(idle()) << "no copy follows";
}

TEST_F(ProtectorTest, WhatIsNoNewsOfThePeerChangesNothing) {
  const Datum* d = carry(*slow);
  protector->onRecovered({9_subflow, d->pn, 1}, now);
  protector->onRecovered({0_subflow, d->pn + 1, 128}, now);
  EXPECT_FALSE(d->done);
  EXPECT_TRUE(traced.empty());
  protector->onRecovered({0_subflow, d->pn, 1}, now);
  protector->onRecovered({0_subflow, d->pn, 1}, now);
  EXPECT_EQ(traced.size(), 1u);
}

// ---- second sendings

TEST_F(ProtectorTest, ADuplicatingPolicySendsEachPacketTwice) {
  use("redundant");
  const Datum* d = carry(*slow);
  EXPECT_FALSE(protector->onNewData(d)) << "it wants no turn";
  EXPECT_TRUE(protector->hasSecond());
  ASSERT_TRUE(protector->pollSecond(out, now));
  EXPECT_EQ(newest(*fast), Data{d});
  EXPECT_FALSE(protector->hasSecond());
  EXPECT_FALSE(idle()) << "and no more";
}

TEST_F(ProtectorTest, ClearGivesBackWhatItHolds) {
  use("redundant");
  const Datum* d = carry(*slow);
  uint32_t refs = d->refs;
  protector->onNewData(d);
  EXPECT_EQ(d->refs, refs + 1);
  protector->clear();
  EXPECT_EQ(d->refs, refs);
  EXPECT_FALSE(protector->hasSecond());
}

TEST_F(ProtectorTest, WhatHoldsAFullReceiveWindowBackGoesOverAnotherPath) {
  use("none");
  const Datum* oldest = carry(*slow, flow, 10);
  for (uint64_t i = 1; i < Resequencer::kSpan / 2; ++i) protector->onNewData(carry(*slow, flow, 10));
  EXPECT_FALSE(protector->hasSecond());
  protector->onNewData(carry(*slow, flow, 10));
  ASSERT_TRUE(protector->pollSecond(out, now));
  EXPECT_EQ(newest(*fast), Data{oldest});
  protector->onNewData(carry(*slow, flow, 10));
  EXPECT_FALSE(protector->hasSecond()) << "once";
}

}  // namespace
}  // namespace braid::protector_test
