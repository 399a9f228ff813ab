// Openings of streams that ask whether the destination has accepted the connection.

#include <map>
#include <utility>

#include "base/random.h"
#include "tests/unit/tunnel/session/session_pair_test.h"
#include "tunnel/stream/registry.h"

namespace braid::stream_answers_test {
namespace {

const StreamEnds kEnds{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")};

struct StreamAnswers : test::SessionPairTest {
  StreamRegistry registry;
  Random dice{1};
  double loss = 0;
  int fromHub = 0;                      ///< datagrams
  StreamHandle far;                     ///< the stream that the peer has opened last
  std::map<StreamHandle, int> answers;  ///< how often `answered` was told
  std::map<StreamHandle, StreamCause> ends;

  StreamAnswers() {
    options.streams.on = true;
    shared.streams = &registry;
  }
  ~StreamAnswers() override {
    edge.reset();
    hub.reset();
  }
  bool carry(Session& from, Session& to, const Route& arrival) override {
    Datagram d;
    if (!from.pollDatagram(d, now)) return false;
    fromHub += &from == hub.get();
    if (dice.chance(loss)) return true;
    std::optional<DatagramHeader> header = readHeader(d.bytes.view());
    EXPECT_TRUE(header);
    EXPECT_FALSE(to.onDatagram(*header, arrival, d.ecn, std::move(d.bytes), now));
    return true;
  }
  void begin() {
    SessionSecrets secrets;
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
    start(secrets);
    run(1s);
  }
  void listen(Duration after = 5ms) {
    run(after);
    for (StreamEvent event; registry.poll(event);) {
      if (event.opened) far = event.stream;
      answers[event.stream] += event.answered;
      if (event.reset) ends[event.stream] = *event.reset;
    }
  }
  StreamHandle open(bool asks) {
    StreamHandle near = edge->streams().open(kEnds, now, asks);
    EXPECT_TRUE(near);
    listen();
    EXPECT_TRUE(far);
    return near;
  }
  void answer(StreamHandle stream) {
    Stream* s = registry.find(stream);
    ASSERT_TRUE(s);
    s->of().answer(*s);
  }
  Stream& of(StreamHandle stream) { return *registry.find(stream); }
};

TEST_F(StreamAnswers, TheOpenerHearsOnceThatTheDestinationHasAccepted) {
  begin();
  EXPECT_TRUE(edge->streams().canAsk());
  StreamHandle near = open(true);
  listen(100ms);
  EXPECT_EQ(answers[near], 0);
  answer(far);
  listen();
  EXPECT_EQ(answers[near], 1);
  answer(far);
  of(far).of().sendSide().write(of(far), std::vector<uint8_t>(10), now);
  listen(100ms);
  EXPECT_EQ(answers[near], 1);
  EXPECT_EQ(answers[far], 0);
  EXPECT_EQ(of(near).assembly().readable(), 10u);
}

TEST_F(StreamAnswers, WithoutAQuestionNothingIsSent) {
  begin();
  StreamHandle near = open(false);
  listen(100ms);
  fromHub = 0;
  answer(far);
  listen(100ms);
  EXPECT_EQ(answers[near], 0);
  EXPECT_EQ(fromHub, 0);
}

TEST_F(StreamAnswers, WhatTheDestinationSaysIsAnAnswer) {
  begin();
  for (bool speaks : {true, false}) {
    StreamHandle near = open(true);
    if (speaks) of(far).of().sendSide().write(of(far), std::vector<uint8_t>(10), now);
    if (!speaks) of(far).of().sendSide().finish(of(far), now);
    listen();
    EXPECT_EQ(answers[near], 1) << (speaks ? "bytes" : "the end");
  }
}

// It raises no limit.
TEST_F(StreamAnswers, ACreditThatIsKnownIsAnAnswer) {
  RecordProperty("rule", "stream.answer");
  begin();
  StreamHandle near = open(true);
  const size_t before = of(near).of().sendSide().writable(of(near), 1 << 20);
  edge->streams().onCredit({of(near).id(), 1});
  listen();
  EXPECT_EQ(answers[near], 1);
  EXPECT_EQ(of(near).of().sendSide().writable(of(near), 1 << 20), before);
}

TEST_F(StreamAnswers, AnAnswerComesThroughLosses) {
  begin();
  loss = 0.4;
  for (int i = 0; i < 50; ++i) {
    far = {};
    StreamHandle near = edge->streams().open(kEnds, now, true);
    for (int tries = 0; tries < 100 && !far; ++tries) listen(50ms);
    ASSERT_TRUE(far) << i;
    answer(far);
    for (int tries = 0; tries < 100 && answers[near] == 0; ++tries) listen(50ms);
    ASSERT_EQ(answers[near], 1) << i;
  }
}

TEST_F(StreamAnswers, ARefusalIsAReset) {
  begin();
  StreamHandle near = open(true);
  of(far).of().reset(of(far), StreamCause::kRefused, now);
  listen();
  EXPECT_EQ(answers[near], 0);
  EXPECT_EQ(ends[near], StreamCause::kRefused);
}

TEST_F(StreamAnswers, APeerOfAnEarlierReleaseIsNotAsked) {
  begin();
  Params earlier;
  earlier.lanes = Params::kPacketLane | Params::kStreamLane;
  earlier.streams = 100;
  edge->streams().setPeerParams(earlier);
  EXPECT_TRUE(edge->streams().canOpen());
  EXPECT_FALSE(edge->streams().canAsk());
}

}  // namespace
}  // namespace braid::stream_answers_test
