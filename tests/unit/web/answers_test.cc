#include "web/answers.h"

#include <gtest/gtest.h>

#include "tests/unit/web/fake_daemon.h"

namespace braid::answers_test {
namespace {

const nlohmann::json kStatus = {{"cmd", "status"}};

struct AnswersTest : testing::Test {
  AnswersTest() { daemon.answersAtOnce = false; }
  Answers::Done counting() {
    return [this](const Answers::Shared& answer) {
      ++told;
      last = answer;
    };
  }
  FakeDaemon daemon;
  Time now{1000s};
  Answers answers{daemon, [this] { return now; }};
  size_t told = 0;
  Answers::Shared last;
};

TEST_F(AnswersTest, AQuestionThatIsOnItsWayIsNotAskedAgain) {
  daemon.sayAll();
  for (int i = 0; i < 50; ++i) answers.get(kStatus, 1s, counting());
  EXPECT_EQ(daemon.asked.size(), 1u);
  EXPECT_EQ(told, 0u);
  daemon.answer();
  EXPECT_EQ(told, 50u);
  EXPECT_EQ(last->value["peers"][0]["name"], "hub");
}

TEST_F(AnswersTest, AnAnswerServesUntilItIsTooOld) {
  daemon.sayAll();
  answers.get(kStatus, 1s, counting());
  daemon.answer();
  now += 1s;
  answers.get(kStatus, 1s, counting());
  EXPECT_EQ(told, 2u);
  EXPECT_EQ(daemon.asked.size(), 1u);
  now += 1ms;
  answers.get(kStatus, 1s, counting());
  EXPECT_EQ(told, 2u);
  EXPECT_EQ(daemon.asked.size(), 2u);
}

TEST_F(AnswersTest, AFailureIsAnAnswerThatGetsOldLikeOthers) {
  daemon.problem = "no daemon answers";
  answers.get(kStatus, 1s, counting());
  daemon.answer();
  EXPECT_EQ(last->problem, "no daemon answers");
  daemon.problem.clear();
  daemon.sayAll();
  now += 2s;
  answers.get(kStatus, 1s, counting());
  daemon.answer();
  EXPECT_EQ(last->problem, "");
}

TEST_F(AnswersTest, FewQuestionsAreOnTheirWayAtOnce) {
  for (int i = 0; i < 10; ++i)
    answers.get({{"cmd", "history"}, {"peer", std::to_string(i)}}, 1s, counting());
  EXPECT_EQ(daemon.waiting(), Answers::kAtOnce);
  for (int i = 0; i < 10; ++i) {
    EXPECT_LE(daemon.waiting(), Answers::kAtOnce);
    daemon.answer();
  }
  EXPECT_EQ(told, 10u);
  EXPECT_EQ(daemon.asked.size(), 10u);
}

TEST_F(AnswersTest, OldAnswersAreForgotten) {
  daemon.answersAtOnce = true;
  for (int i = 0; i < 1000; ++i)
    answers.get({{"cmd", "history"}, {"peer", std::to_string(i)}}, 1s, counting());
  EXPECT_LE(answers.kept(), Answers::kKept);
  now += Answers::kForgotten + 1s;
  answers.get(kStatus, 1s, counting());
  EXPECT_EQ(answers.kept(), 1u);
}

TEST_F(AnswersTest, AnAnswerThatComesAfterTheEndIsNobodys) {
  auto other = std::make_unique<Answers>(daemon, [this] { return now; });
  other->get(kStatus, 1s, counting());
  other.reset();
  daemon.answer();
  EXPECT_EQ(told, 0u);
}

}  // namespace
}  // namespace braid::answers_test
