#include "linkemu/control_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace braid::control_server_test {
namespace {

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() : loop_(ev_loop_new(0)) {
    directory_ = testing::TempDir() + "control_server_test.XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    path_ = directory_ + "/s";
  }
  ~ControlServerTest() override {
    ev_loop_destroy(loop_);
    std::filesystem::remove_all(directory_);
  }
  ControlServer serve() {
    return ControlServer(path_, loop_, [](const std::string& line) { return "<" + line + ">"; });
  }
  UniqueFd connectTo() {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    turn();
    return fd;
  }
  void turn() {
    for (int i = 0; i < 5; ++i) ev_run(loop_, EVRUN_NOWAIT);
  }
  std::string ask(const UniqueFd& fd, const std::string& text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    turn();
    return answer(fd);
  }
  std::string answer(const UniqueFd& fd) {
    char buffer[4096];
    ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (n == 0) return "closed";
    return n < 0 ? "" : std::string(buffer, static_cast<size_t>(n));
  }

  struct ev_loop* loop_;
  std::string directory_;
  std::string path_;
};

TEST_F(ControlServerTest, AnswersLineByLine) {
  ControlServer server = serve();
  UniqueFd a = connectTo();
  UniqueFd b = connectTo();
  EXPECT_EQ(ask(a, "one\n"), "<one>\n");
  EXPECT_EQ(ask(a, "two\nthr"), "<two>\n");
  EXPECT_EQ(ask(b, "other\n\n"), "<other>\n<>\n");
  EXPECT_EQ(ask(a, "ee\n"), "<three>\n");
}

TEST_F(ControlServerTest, ClosesAnEndlessLine) {
  ControlServer server = serve();
  UniqueFd fd = connectTo();
  std::string part(65536, 'x');
  std::string got;
  for (int i = 0; i < 20 && got != "closed"; ++i) {
    if (::send(fd.get(), part.data(), part.size(), MSG_NOSIGNAL) < 0) break;
    turn();
    got = answer(fd);
  }
  EXPECT_TRUE(got == "closed" || errno == EPIPE || errno == ECONNRESET);
  EXPECT_EQ(ask(connectTo(), "still there\n"), "<still there>\n");
}

TEST_F(ControlServerTest, AtMostSixteenClients) {
  ControlServer server = serve();
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 16; ++i) clients.push_back(connectTo());
  EXPECT_EQ(ask(clients.back(), "x\n"), "<x>\n");
  EXPECT_EQ(answer(connectTo()), "closed");
  clients.pop_back();
  turn();
  EXPECT_EQ(ask(connectTo(), "y\n"), "<y>\n");
}

TEST_F(ControlServerTest, OwnerOnlyAndRemovedAtTheEnd) {
  {
    ControlServer server = serve();
    struct stat s;
    ASSERT_EQ(::stat(path_.c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0600u);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ControlServerTest, ReplacesAStaleSocketButNoLiveOneAndNoFile) {
  {
    UniqueFd left(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ASSERT_EQ(::bind(left.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  {
    ControlServer server = serve();
    EXPECT_THROW(serve(), std::runtime_error);
    EXPECT_EQ(ask(connectTo(), "mine\n"), "<mine>\n");
  }
  std::filesystem::create_directory(path_);
  EXPECT_THROW(serve(), std::runtime_error);
}

}  // namespace
}  // namespace braid::control_server_test
