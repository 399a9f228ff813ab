#include "gateway/control/control.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/unit/gateway/control/control_fixture.h"

namespace braid::control_test {
namespace {

using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  ControlTest() : loop_(ev_loop_new(EVFLAG_AUTO)) {
    std::string name = (std::filesystem::temp_directory_path() / "braid-control-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "t.sock";
  }
  ~ControlTest() override {
    for (int fd : clients_) close(fd);
    ev_loop_destroy(loop_);
    std::filesystem::remove_all(folder_);
  }

  int connectClient() {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    clients_.push_back(fd);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    return fd;
  }
  void turn(int times = 8) {
    for (int i = 0; i < times; ++i) ev_run(loop_, EVRUN_NOWAIT);
  }
  // The received text; "EOF" when the server has closed.
  std::string received(int fd) {
    turn();
    std::string text;
    char bytes[65536];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0) {
      text.append(bytes, static_cast<size_t>(got));
      turn();
    }
    return text + (got == 0 ? "EOF" : "");
  }
  void say(int fd, const std::string& text) {
    ASSERT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  std::string startError(const std::string& group = "") {
    try {
      ControlPath path(path_);
      ControlServer server(loop_, path, group, daemon_);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  struct ev_loop* loop_;
  std::filesystem::path folder_, path_;
  FakeGateway daemon_;
  std::vector<int> clients_;
};

TEST_F(ControlTest, ServesSeveralClientsAndRemovesItsSocket) {
  {
    ControlPath path(path_);
    ControlServer server(loop_, path, "", daemon_);
    struct stat info {};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0660u);
    int a = connectClient(), b = connectClient();
    say(b, "{\"cmd\":\"version\"}\n");
    EXPECT_THAT(received(b), HasSubstr("1.2.3"));
    say(a, "{\"cmd\":\"reload\"}\n");
    EXPECT_EQ(received(a), "{\"ok\":true}\n");
    EXPECT_EQ(server.clients(), 2u);
    close(a);
    clients_.erase(clients_.begin());
    turn();
    EXPECT_EQ(server.clients(), 1u);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Sends descriptors along with the text.
void sayWith(int fd, const std::string& text, const std::vector<int>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))]{};
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  ASSERT_EQ(sendmsg(fd, &message, MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

TEST_F(ControlTest, DescriptorOfTheClientReachesTheDaemon) {
  ControlPath path(path_);
  ControlServer server(loop_, path, "", daemon_);
  UniqueFd file(open((folder_ / "t").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  int fd = connectClient();
  sayWith(fd, "{\"cmd\":\"trace-on\"}\n", {file.get()});
  EXPECT_EQ(received(fd), "{\"ok\":true}\n");
  ASSERT_TRUE(daemon_.traced);
  EXPECT_NE(daemon_.traced.get(), file.get());
  EXPECT_NE(fcntl(daemon_.traced.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(write(daemon_.traced.get(), "x", 1), 1);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "t"), 1u);
}

// A pipe's reader sees its end once the daemon holds none of the descriptors.
TEST_F(ControlTest, DescriptorsInNumbersAreClosed) {
  if (std::getenv("BRAID_EMULATED"))
    GTEST_SKIP() << "qemu-user keeps descriptors that do not fit the buffer";
  ControlPath path(path_);
  ControlServer server(loop_, path, "", daemon_);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd reader(ends[0]);
  int fd = connectClient();
  sayWith(fd, "{\"cmd\":\"version\"}\n", std::vector<int>(8, ends[1]));
  close(ends[1]);
  EXPECT_THAT(received(fd), HasSubstr("1.2.3"));
  char byte;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0);
}

TEST_F(ControlTest, LongAnswersArriveWhole) {
  daemon_.flows = 900;
  ControlPath path(path_);
  ControlServer server(loop_, path, "", daemon_);
  daemon_.device.assign(3 << 20, 'x');
  int fd = connectClient();
  say(fd, "{\"cmd\":\"status\"}\n");
  std::string answer = received(fd);
  EXPECT_GT(answer.size(), 3u << 20);
  EXPECT_EQ(answer.back(), '\n');
}

TEST_F(ControlTest, ATurnMakesAPartOfOneAnswerHoweverManyClientsAsk) {
  daemon_.names.assign(200, "hub");
  ControlPath path(path_);
  ControlServer server(loop_, path, "", daemon_);
  int a = connectClient(), b = connectClient();
  say(a, "{\"cmd\":\"peers\"}\n");
  say(b, "{\"cmd\":\"peers\"}\n");
  size_t turns = 0;
  for (; daemon_.told < 400 && turns < 1000; ++turns) {
    size_t before = daemon_.told;
    turn(1);
    EXPECT_LE(daemon_.told - before, ControlAnswer::kRowsAtOnce);
  }
  EXPECT_EQ(daemon_.told, 400u) << "both come to their end";
  turn(20);
  EXPECT_THAT(received(a), testing::EndsWith("\n"));
  EXPECT_THAT(received(b), testing::EndsWith("\n"));
}

TEST_F(ControlTest, RefusesASecondDaemonAtOnceAndLeavesTheFirstAlone) {
  ControlPath path(path_);
  ControlServer first(loop_, path, "", daemon_);
  std::string told = startError();
  EXPECT_THAT(told, testing::StartsWith("lock " + path_.string() + ".lock: held by a process of "));
  EXPECT_THAT(told, HasSubstr("another daemon has the control socket " + path_.string() +
                              ": stop it first"));
  EXPECT_THAT(told, testing::Not(HasSubstr("\n")));
  int fd = connectClient();
  say(fd, "{\"cmd\":\"version\"}\n");
  EXPECT_THAT(received(fd), HasSubstr("1.2.3"));
}

// A socket of an older release without lock file.
TEST_F(ControlTest, RefusesADaemonThatOnlyAnswers) {
  ControlPath path(path_);
  ControlServer first(loop_, path, "", daemon_);
  std::filesystem::remove(path_.string() + ".lock");
  EXPECT_THAT(startError(), HasSubstr("another daemon answers there; stop it first"));
}

TEST_F(ControlTest, WhoLocksTheFolderHoldsNobodyUp) {
  UniqueFd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(folder.get(), LOCK_EX), 0);
  alarm(10);  // without the check the daemon would wait for it forever
  EXPECT_EQ(startError(), "");
  alarm(0);
}

TEST_F(ControlTest, ReplacesAStaleSocket) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
  EXPECT_EQ(startError(), "");
}

TEST_F(ControlTest, LeavesOtherFilesAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_THAT(startError(), HasSubstr("something that is no socket is there"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ControlTest, SaysWhatIsMissing) {
  EXPECT_THAT(startError("no-such-group-here"),
              HasSubstr("no group 'no-such-group-here'; create it"));
  EXPECT_FALSE(std::filesystem::exists(path_)) << "a failed start leaves nothing behind";
  path_ = folder_ / "missing" / "t.sock";
  EXPECT_THAT(startError(), HasSubstr("create the folder"));
}

TEST_F(ControlTest, ClientsAreBounded) {
  ControlPath path(path_);
  ControlServer server(loop_, path, "", daemon_);
  for (size_t i = 0; i < ControlServer::kMaxClients; ++i) connectClient(), turn(2);
  EXPECT_THAT(received(connectClient()),
              testing::AllOf(HasSubstr("too many clients"), testing::EndsWith("EOF")));
  EXPECT_EQ(server.clients(), ControlServer::kMaxClients);
}

TEST_F(ControlTest, TooLongALineIsAnsweredAndClosed) {
  ControlPath path(path_);
  ControlServer server(loop_, path, "", daemon_);
  int fd = connectClient();
  say(fd, std::string(ControlSession::kMaxLine + 1, 'x'));
  EXPECT_THAT(received(fd),
              testing::AllOf(HasSubstr("at most 4096 bytes"), testing::EndsWith("EOF")));
  EXPECT_EQ(server.clients(), 0u);
}

TEST_F(ControlTest, ClientThatDoesNotReadHoldsNobodyUp) {
  ControlPath path(path_);
  ControlServer server(loop_, path, "", daemon_);
  daemon_.device.assign(4 << 20, 'x');
  int deaf = connectClient();
  say(deaf, "{\"cmd\":\"status\"}\n");
  turn(50);
  daemon_.device = "braid0";
  int fd = connectClient();
  say(fd, "{\"cmd\":\"version\"}\n");
  EXPECT_THAT(received(fd), HasSubstr("1.2.3"));
}

}  // namespace
}  // namespace braid::control_test
