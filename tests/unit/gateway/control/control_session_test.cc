#include "gateway/control/control_session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/unit/gateway/control/control_fixture.h"

namespace braid::control_session_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const Time kStart{1000s};

struct ControlSessionTest : testing::Test {
  // Makes the requested answer, if there was a request.
  void turn(ControlSession& s) {
    while (s.wantsTurn()) {
      s.onTurn(kStart);
      ++turns;
    }
  }
  // The whole answer, as the client reads it.
  std::string take() {
    turn(session);
    std::string out;
    while (!session.output().empty() && !out.ends_with('\n')) {
      out += session.output();
      session.onWritten(session.output().size(), kStart);
    }
    return out;
  }
  json ask(const std::string& line) {
    session.onInput(line + "\n", kStart);
    return json::parse(take());
  }
  FakeGateway daemon;
  ControlSession session{daemon, true, kStart};
  size_t turns = 0;
};

TEST_F(ControlSessionTest, AnswersEveryCommandWithOneLine) {
  for (const char* name :
       {"status", "paths", "flows", "peers", "recovery", "reload", "trace-off", "version"}) {
    session.onInput(std::string(R"({"cmd":")") + name + "\"}\n", kStart);
    std::string answer = take();
    EXPECT_EQ(answer.find('\n'), answer.size() - 1) << name;
    EXPECT_EQ(json::parse(answer)["ok"], true) << name;
  }
  EXPECT_EQ(daemon.reloads, 1);
  EXPECT_EQ(ask(R"({"cmd":"version"})"), json::parse(R"({"ok":true,"version":"1.2.3"})"));
  EXPECT_EQ(ask(R"({"cmd":"flows"})")["peers"][0]["flows"].size(), 2u);
  EXPECT_EQ(daemon.asked, kListedFlows);
  EXPECT_EQ(ask(R"({"cmd":"paths"})")["peers"][0]["subflows"].size(), 2u);
  EXPECT_EQ(ask(R"({"cmd":"peers"})")["peers"][0]["name"], "hub");
  EXPECT_EQ(daemon.asked, 0u) << "flows are told to who asks for them";
}

TEST_F(ControlSessionTest, ADrainTellsWhatIsOpen) {
  EXPECT_EQ(ask(R"({"cmd":"drain","seconds":2.5})"), json::parse(R"({"ok":true,"open":7})"));
  EXPECT_EQ(daemon.drained, 2500ms);
  // 1e-12 seconds are no nanosecond.
  for (const char* bad : {"0", "1e-12", "-1", "601", "1e300", "\"5\""})
    EXPECT_EQ(ask(std::string(R"({"cmd":"drain","seconds":)") + bad + "}")["ok"], false) << bad;
  EXPECT_EQ(daemon.drained, 2500ms);
}

TEST_F(ControlSessionTest, AnInvitationIsForTheOwnerAlone) {
  ControlSession stranger(daemon, false, kStart);
  stranger.onInput(R"({"cmd":"invite","name":"van"})"
                   "\n",
                   kStart);
  turn(stranger);
  EXPECT_THAT(std::string(stranger.output()), HasSubstr("only root may invite"));
  EXPECT_EQ(daemon.invites, 0);
  json answer = ask(
      R"({"cmd":"invite","name":"van","addresses":["gw:1"],"networks":["10.0.0.0/8","::/0"],"seconds":120})");
  EXPECT_EQ(answer, json::parse(R"({"ok":true,"line":"a line","note":null})"));
  EXPECT_EQ(daemon.invited.name, "van");
  EXPECT_THAT(daemon.invited.addresses, testing::ElementsAre("gw:1"));
  EXPECT_THAT(daemon.invited.networks, testing::ElementsAre("10.0.0.0/8", "::/0"));
  EXPECT_EQ(daemon.invited.lifetime, 120s);
  daemon.inviteResult.problem = "no";
  EXPECT_EQ(ask(R"({"cmd":"invite"})")["error"], "no");
}

TEST_F(ControlSessionTest, AMalformedInvitationIsRefused) {
  for (const char* rest :
       {R"("name":5)", R"("names":"a")", R"("addresses":"a")", R"("networks":[1])",
        R"("seconds":-1)", R"("seconds":99999999999)", R"("seconds":"5")"})
    EXPECT_THAT(ask(std::string(R"({"cmd":"invite",)") + rest + "}")["error"].get<std::string>(),
                HasSubstr("invite takes"))
        << rest;
  EXPECT_EQ(ask(R"({"cmd":"status","name":"a"})")["ok"], false) << "the others take nothing";
  EXPECT_EQ(daemon.invites, 0);
}

TEST_F(ControlSessionTest, TellsThePastOfAPathAndOfAPeer) {
  daemon.past.add(*daemon.peerStatus(0, 0), 1000);
  EXPECT_EQ(ask(R"({"cmd":"history"})")["paths"].size(), 2u);
  EXPECT_TRUE(ask(R"({"cmd":"history"})")["paths"][0]["bytes"].is_number_unsigned());
  EXPECT_EQ(ask(R"({"cmd":"history","peer":"hub","path":"lte"})")["steps"].size(), 1u);
  EXPECT_EQ(ask(R"({"cmd":"history","peer":"hub"})")["peer"], "hub");
  EXPECT_EQ(ask(R"({"cmd":"history","peer":"hub","path":"x"})")["error"],
            "nothing is known of such a path");
  EXPECT_EQ(ask(R"({"cmd":"history","peer":"x"})")["error"], "nothing is known of such a peer");
  EXPECT_EQ(ask(R"({"cmd":"history","peer":3})")["error"], "'peer' has a value of the wrong type");
  EXPECT_THAT(ask(R"({"cmd":"status","peer":"hub"})")["error"].get<std::string>(),
              HasSubstr("has no argument 'peer'"));
}

TEST_F(ControlSessionTest, StartsALoadTestWithinItsBounds) {
  EXPECT_EQ(
      ask(R"({"cmd":"test-start","peer":"hub","path":"wifi","seconds":2.5,"bytes":1000})")["ok"],
      true);
  EXPECT_EQ(daemon.tested, "hub wifi");
  EXPECT_EQ(ask(R"({"cmd":"test"})")["subflows"].size(), 2u);
  EXPECT_EQ(ask(R"({"cmd":"test"})")["left_s"], 2);
  EXPECT_EQ(ask(R"({"cmd":"test-stop"})")["ok"], true);
  EXPECT_EQ(daemon.tested, "");
  EXPECT_EQ(ask(R"({"cmd":"test-start","peer":"x"})")["error"], "there is no peer x");
  for (const char* wrong : {R"("seconds":0)", R"("seconds":1e-12)", R"("seconds":61)",
                            R"("bytes":0)", R"("bytes":10737418241)"}) {
    json answer = ask(std::string(R"({"cmd":"test-start","peer":"hub",)") + wrong + "}");
    EXPECT_EQ(answer["error"], "a test takes up to 60 seconds and 10 GiB, and more than nothing")
        << wrong;
  }
  EXPECT_EQ(ask(R"({"cmd":"test-start","peer":"hub","bytes":-1})")["ok"], false);
  EXPECT_EQ(ask(R"({"cmd":"test-start","peer":"hub","metered":1})")["ok"], false);
}

TEST_F(ControlSessionTest, TraceGetsTheDescriptorThatCameWithIt) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  session.onDescriptor(UniqueFd(ends[1]));
  EXPECT_EQ(ask(R"({"cmd":"trace-on"})")["ok"], true);
  EXPECT_EQ(daemon.traced.get(), ends[1]);
  EXPECT_EQ(ask(R"({"cmd":"trace-off"})")["ok"], true);
  EXPECT_EQ(daemon.traced.get(), -1);
  EXPECT_EQ(daemon.traces, 2);
}

TEST_F(ControlSessionTest, TraceWithoutAFileIsRefused) {
  EXPECT_THAT(ask(R"({"cmd":"trace-on"})")["error"].get<std::string>(), HasSubstr("needs a file"));
  EXPECT_EQ(daemon.traces, 0);
}

TEST_F(ControlSessionTest, TraceTellsWhatIsWrongWithTheFile) {
  daemon.traceProblem = "it is no regular file";
  session.onDescriptor(UniqueFd(open("/dev/null", O_WRONLY | O_CLOEXEC)));
  EXPECT_EQ(ask(R"({"cmd":"trace-on"})"), (json{{"ok", false}, {"error", daemon.traceProblem}}));
}

// A reader sees the end of a pipe once its other end is closed everywhere.
TEST_F(ControlSessionTest, DescriptorThatNobodyAskedForIsClosed) {
  for (const char* line : {R"({"cmd":"version"})", "hello"}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    UniqueFd reader(ends[0]);
    session.onDescriptor(UniqueFd(ends[1]));
    ask(line);
    char byte;
    EXPECT_EQ(read(reader.get(), &byte, 1), 0) << line;
    EXPECT_EQ(ask(R"({"cmd":"trace-on"})")["ok"], false) << "it does not wait for a later request";
  }
}

TEST_F(ControlSessionTest, ReloadTellsWhatIsWrong) {
  daemon.reloadProblem = "a.yaml:1:1: x\na.yaml:2:2: y";
  EXPECT_EQ(ask(R"({"cmd":"reload"})"), (json{{"ok", false}, {"error", daemon.reloadProblem}}));
}

TEST_F(ControlSessionTest, RefusesWhatIsNoRequest) {
  for (const char* line :
       {"hello", "{", "[]", "1", "null", "{}", R"({"cmd":1})", R"({"command":"status"})",
        R"({"cmd":"status","peer":"x"})", R"({"cmd":"Status"})", "{\"cmd\":\"st\xff\"}", "\x80"}) {
    json answer = ask(line);
    EXPECT_EQ(answer["ok"], false) << line;
    EXPECT_FALSE(answer["error"].get<std::string>().empty()) << line;
  }
  EXPECT_THAT(ask(R"({"cmd":"stop"})")["error"].get<std::string>(),
              HasSubstr("known: status, paths"));
  EXPECT_EQ(ask(R"({"cmd":"version"})")["ok"], true) << "a mistake does not end the session";
}

TEST_F(ControlSessionTest, RequestsMayComeInPiecesAndTogether) {
  session.onInput(R"({"cmd":)", kStart);
  EXPECT_EQ(take(), "");
  session.onInput("\"version\"}\r\n\n  \n{\"cmd\":\"reload\"}\n{\"cm", kStart);
  EXPECT_FALSE(session.wantsInput()) << "no reading before the answer is made";
  turn(session);
  EXPECT_FALSE(session.wantsInput()) << "nor before it is taken";
  EXPECT_EQ(daemon.reloads, 0) << "one answer at a time";
  EXPECT_THAT(take(), HasSubstr("1.2.3"));
  EXPECT_EQ(daemon.reloads, 0) << "the next one is made in the next turn";
  EXPECT_EQ(take(), "{\"ok\":true}\n");
  EXPECT_EQ(daemon.reloads, 1);
  EXPECT_TRUE(session.wantsInput());
  session.onInput("d\":\"version\"}\n", kStart);
  EXPECT_THAT(take(), HasSubstr("1.2.3"));
}

TEST_F(ControlSessionTest, AnswersMayBeTakenInPieces) {
  session.onInput("{\"cmd\":\"reload\"}\n", kStart);
  EXPECT_EQ(session.output(), "") << "it is made in the next turn";
  turn(session);
  std::string whole(session.output());
  session.onWritten(3, kStart);
  EXPECT_EQ(session.output(), whole.substr(3));
  session.onWritten(whole.size() - 3, kStart);
  EXPECT_EQ(session.output(), "");
}

TEST_F(ControlSessionTest, LongestLineIsTakenAndALongerOneEndsTheSession) {
  std::string line = R"({"cmd":"version"})";
  line.append(ControlSession::kMaxLine - line.size(), ' ');
  EXPECT_EQ(ask(line)["ok"], true);
  session.onInput(line + " ", kStart);
  EXPECT_THAT(std::string(session.output()), HasSubstr("at most 4096 bytes"));
  EXPECT_FALSE(session.finished()) << "the client is told first";
  take();
  EXPECT_TRUE(session.finished());
}

TEST_F(ControlSessionTest, LastRequestIsAnsweredAfterTheClientClosedItsSide) {
  session.onInput(R"({"cmd":"version"})", kStart);
  session.onEnd(kStart);
  EXPECT_TRUE(session.wantsTurn());
  EXPECT_FALSE(session.finished());
  EXPECT_THAT(take(), HasSubstr("1.2.3"));
  EXPECT_TRUE(session.finished());
}

TEST_F(ControlSessionTest, EndWithoutRequestFinishes) {
  session.onEnd(kStart);
  EXPECT_TRUE(session.finished());
}

TEST_F(ControlSessionTest, DeadlinesOfIdleAndSlowClients) {
  EXPECT_EQ(session.deadline(), kStart + ControlSession::kIdleTimeout);
  session.onInput("{", kStart + 30s);
  EXPECT_EQ(session.deadline(), kStart + ControlSession::kIdleTimeout)
      << "single bytes buy no time";
  session.onInput("}\n", kStart + 40s);  // no request: the answer is there at once
  EXPECT_EQ(session.deadline(), kStart + 40s + ControlSession::kAnswerTimeout);
  session.onWritten(1, kStart + 45s);
  EXPECT_EQ(session.deadline(), kStart + 40s + ControlSession::kAnswerTimeout)
      << "the whole answer counts";
  session.onWritten(session.output().size(), kStart + 46s);
  EXPECT_EQ(session.deadline(), kStart + 46s + ControlSession::kIdleTimeout);
}

TEST_F(ControlSessionTest, BytesThatAreNoTextDoNotBreakTheAnswer) {
  daemon.device = "br\xff";
  EXPECT_EQ(ask(R"({"cmd":"status"})")["gateway"]["device"], "br\xef\xbf\xbd");
}

TEST_F(ControlSessionTest, AnAnswerAboutManyIsMadeAFewRowsInATurn) {
  daemon.names.clear();
  for (int i = 0; i < 100; ++i) daemon.names.push_back("edge" + std::to_string(i));
  daemon.flows = 30;
  using Whole = json (*)(FakeGateway&);
  const std::pair<const char*, Whole> commands[] = {
      {"status", [](FakeGateway& d) { return statusJson(d.gatewayStatus(), d.whole()); }},
      {"peers", [](FakeGateway& d) { return peersJson(d.whole()); }},
      {"paths", [](FakeGateway& d) { return pathsJson(d.whole()); }},
      {"flows", [](FakeGateway& d) { return flowsJson(d.whole(kListedFlows)); }},
      {"recovery", [](FakeGateway& d) { return recoveryJson(d.gatewayStatus(), d.whole()); }}};
  for (const auto& [name, whole] : commands) {
    turns = 0;
    json expected = whole(daemon);
    expected["ok"] = true;
    EXPECT_EQ(ask(std::string(R"({"cmd":")") + name + "\"}"), expected) << name;
    size_t rows = 0;
    for (const json& peer : expected["peers"]) {
      ++rows;
      for (const auto& [key, value] : peer.items()) rows += value.is_array() ? value.size() : 0;
    }
    EXPECT_EQ(turns, 2 + rows / ControlAnswer::kRowsAtOnce + 1) << name;
  }
}

TEST_F(ControlSessionTest, TheFlowsOfOnePeerAreMadeAFewInATurn) {
  daemon.flows = 1000;
  EXPECT_EQ(ask(R"({"cmd":"flows"})")["peers"][0]["flows"].size(), 1000u);
  EXPECT_GE(turns, 1000 / ControlAnswer::kRowsAtOnce);
}

TEST_F(ControlSessionTest, AnHourOfAPathIsMadeAFewStepsInATurn) {
  for (int64_t i = 0; i < 100; ++i) daemon.past.add(*daemon.peerStatus(0, 0), 1000 + 10 * i);
  for (int i = 0; i < 100; ++i)
    daemon.past.add(Event{Event::Kind::kSubflowUp, "hub", "up", "wifi"}, 5);
  json path = historyObject(*daemon.past.path("hub", "wifi")).whole();
  path["ok"] = true;
  EXPECT_EQ(ask(R"({"cmd":"history","peer":"hub","path":"wifi"})"), path);
  EXPECT_GE(turns, 100 / ControlAnswer::kRowsAtOnce);
  turns = 0;
  EXPECT_EQ(ask(R"({"cmd":"history"})")["events"].size(), 100u);
  EXPECT_GE(turns, 100 / ControlAnswer::kRowsAtOnce);
}

TEST_F(ControlSessionTest, AnAnswerBeginsAnewWhenThePeersChangeMeanwhile) {
  daemon.names.assign(40, "edge");
  session.onInput("{\"cmd\":\"peers\"}\n", kStart);
  for (int i = 0; i < 3; ++i) session.onTurn(kStart);
  daemon.names.assign(30, "other");
  json answer = json::parse(take());
  ASSERT_EQ(answer["peers"].size(), 30u);
  for (const json& peer : answer["peers"]) EXPECT_EQ(peer["name"], "other");

  session.onInput("{\"cmd\":\"peers\"}\n", kStart);
  for (int i = 0; i < 3; ++i) session.onTurn(kStart);
  daemon.names.resize(17);
  EXPECT_EQ(json::parse(take())["peers"].size(), 17u);
}

TEST_F(ControlSessionTest, AnAnswerThatIsNeverDoneEndsTheSession) {
  session.onInput("{\"cmd\":\"peers\"}\n", kStart);
  session.onTurn(kStart + 3s);
  EXPECT_TRUE(session.wantsTurn());
  EXPECT_EQ(session.deadline(), kStart + ControlSession::kAnswerTimeout);
}

TEST_F(ControlSessionTest, TooManyPeersForAnAnswerAreAnError) {
  daemon.names.assign(5000, std::string(2000, 'x'));
  EXPECT_EQ(ask(R"({"cmd":"paths"})")["error"], "the answer is too long");
  EXPECT_EQ(ask(R"({"cmd":"version"})")["ok"], true);
}

TEST_F(ControlSessionTest, AnswersAreBounded) {
  daemon.device.assign(ControlAnswer::kMaxAnswer, 'x');
  EXPECT_EQ(ask(R"({"cmd":"status"})")["error"], "the answer is too long");
}

}  // namespace
}  // namespace braid::control_session_test
