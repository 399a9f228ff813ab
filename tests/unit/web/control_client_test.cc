// The control client, tested against a real control server.

#include "web/control_client.h"

#include <ev.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "gateway/control/control.h"
#include "tests/unit/gateway/control/control_fixture.h"

namespace braid::control_client_test {
namespace {

struct ControlClientTest : testing::Test {
  ControlClientTest() : loop_(ev_loop_new(EVFLAG_AUTO)) {
    std::string name = (std::filesystem::temp_directory_path() / "braid-web-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "t.sock";
  }
  ~ControlClientTest() override {
    server_.reset();
    ev_loop_destroy(loop_);
    std::filesystem::remove_all(folder_);
  }
  void serve() {
    if (!place_) place_.emplace(path_);
    server_.emplace(loop_, *place_, "", gateway_);
  }
  /// Sends a request and runs the loops of client and server in turn until an answer arrives.
  DaemonAnswer ask(const nlohmann::json& request) {
    std::optional<DaemonAnswer> out;
    ControlClient client(io_, path_);
    client.ask(request, [&](DaemonAnswer answer) { out = std::move(answer); });
    io_.restart();
    for (int i = 0; i < 5000 && !out; ++i) {
      ev_run(loop_, EVRUN_NOWAIT);
      io_.run_for(std::chrono::milliseconds(1));
      io_.restart();
    }
    return out.value_or(DaemonAnswer{{}, {}, "nothing came", 0});
  }

  struct ev_loop* loop_;
  boost::asio::io_context io_{1};
  std::filesystem::path folder_;
  std::string path_;
  FakeGateway gateway_;
  std::optional<ControlPath> place_;
  std::optional<ControlServer> server_;
};

TEST_F(ControlClientTest, TakesAWholeAnswerHoweverLong) {
  serve();
  gateway_.device.assign(1 << 20, 'x');
  gateway_.names.assign(100, "hub");
  DaemonAnswer answer = ask({{"cmd", "status"}});
  EXPECT_EQ(answer.problem, "");
  EXPECT_EQ(answer.value["peers"].size(), 100u);
  EXPECT_EQ(answer.value, nlohmann::json::parse(answer.text));
  EXPECT_GT(answer.at, 1'500'000'000);
}

TEST_F(ControlClientTest, TellsWhatTheDaemonRefuses) {
  serve();
  EXPECT_EQ(ask({{"cmd", "history"}, {"peer", "x"}}).problem, "nothing is known of such a peer");
}

TEST_F(ControlClientTest, ADaemonThatIsAwayIsToldAndComesBack) {
  EXPECT_EQ(ask({{"cmd", "version"}}).problem, "no daemon answers at " + path_);
  serve();
  EXPECT_EQ(ask({{"cmd", "version"}}).value["version"], "1.2.3");
  server_.reset();
  EXPECT_EQ(ask({{"cmd", "version"}}).problem, "no daemon answers at " + path_);
  path_ = std::string(200, 'x');
  EXPECT_EQ(ask({{"cmd", "version"}}).problem, "the path of its control socket is too long");
}

}  // namespace
}  // namespace braid::control_client_test
