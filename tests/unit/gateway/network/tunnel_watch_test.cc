#include "gateway/network/tunnel_watch.h"

#include <gtest/gtest.h>

namespace braid::tunnel_watch_test {
namespace {

class TunnelWatchTest : public testing::Test {
 protected:
  void answers(bool on) { watch_.onChange(on, now_); }
  bool carriesAfter(Duration time) {
    now_ += time;
    watch_.onTimer(now_);
    return watch_.carries();
  }

  TunnelWatch watch_;
  Time now_{1h};
};

TEST_F(TunnelWatchTest, TheFirstAnswerIsEnough) {
  EXPECT_FALSE(watch_.carries());
  answers(true);
  EXPECT_TRUE(watch_.carries());
  EXPECT_EQ(watch_.deadline(), kNever);
}

TEST_F(TunnelWatchTest, AShortSilenceChangesNothing) {
  answers(true);
  answers(false);
  EXPECT_TRUE(carriesAfter(TunnelWatch::kPatience - 1ms));
  answers(true);
  EXPECT_TRUE(carriesAfter(1h));
}

TEST_F(TunnelWatchTest, ItComesBackWhenItHasAnsweredForAWhile) {
  answers(true);
  carriesAfter(1h);
  answers(false);
  EXPECT_FALSE(carriesAfter(TunnelWatch::kPatience));
  answers(true);
  EXPECT_FALSE(carriesAfter(TunnelWatch::kReturn - 1ms));
  answers(false);
  answers(true);
  EXPECT_FALSE(carriesAfter(TunnelWatch::kReturn - 1ms)) << "without a break";
  EXPECT_TRUE(carriesAfter(1ms));
}

TEST_F(TunnelWatchTest, FailuresInARowMakeItWaitLonger) {
  answers(true);
  Duration wait = TunnelWatch::kReturn;
  for (int i = 0; i < 8; ++i) {
    answers(false);
    EXPECT_FALSE(carriesAfter(TunnelWatch::kPatience));
    answers(true);
    EXPECT_FALSE(carriesAfter(wait - 1ms)) << i;
    EXPECT_TRUE(carriesAfter(1ms)) << i;
    wait = std::min<Duration>(2 * wait, TunnelWatch::kLongestReturn);
  }
  carriesAfter(1h);
  answers(false);
  carriesAfter(TunnelWatch::kPatience);
  answers(true);
  EXPECT_TRUE(carriesAfter(TunnelWatch::kReturn)) << "long ago";
}

}  // namespace
}  // namespace braid::tunnel_watch_test
