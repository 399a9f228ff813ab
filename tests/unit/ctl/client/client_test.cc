#include "ctl/client/client.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "host/system.h"
#include "tests/temporary_folder.h"

namespace braid::client_test {
namespace {

namespace fs = std::filesystem;

class Client : public testing::Test {
 protected:
  void listenAt(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, path.data(), path.size());
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(socket_.get(), 1), 0);
  }

  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  UniqueFd socket_;
};

// The reason of findSocket() or ask(), by a user without rights.
std::string reasonOfNobody(const std::function<void()>& what) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string reason = "no reason";
    if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
      reason = "not root";
    else
      try {
        what();
      } catch (const NoPermission& e) {
        reason = std::string("permission: ") + e.what();
      } catch (const std::exception& e) {
        reason = e.what();
      }
    _exit(write(ends[1], reason.data(), reason.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t got = read(ends[0], said.data(), said.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  said.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return said;
}

TEST_F(Client, AMissingPermissionIsToldAsThatWithTheGroupThatMay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give its rights up";
  constexpr gid_t kMail = 8;
  const group* mail = getgrgid(kMail);
  if (!mail) GTEST_SKIP() << "this system has no group " << kMail;
  const std::string name = mail->gr_name, path = folder_ / "edge.sock";
  const std::string remedy = "; use sudo, or join group " + name + ": sudo usermod -aG " + name +
                             " $USER, and log in again";
  listenAt(path);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(chown(path.c_str(), 0, kMail) + chmod(path.c_str(), 0660), 0);
  EXPECT_EQ(reasonOfNobody([&] { ask(path, "status"); }),
            "permission: no permission for " + path + remedy);
  ASSERT_EQ(chown(folder_.c_str(), 0, kMail) + chmod(folder_.c_str(), 0750), 0);
  EXPECT_EQ(reasonOfNobody([&] { findSocket("", folder_); }),
            "permission: no permission for " + folder_.string() + remedy)
      << "a folder that cannot be read is not an empty one";
  EXPECT_EQ(reasonOfNobody([&] { ask(path, "status"); }),
            "permission: no permission for " + path + remedy);
  ASSERT_EQ(chown(folder_.c_str(), 0, 0), 0);
  EXPECT_EQ(reasonOfNobody([&] { ask(path, "status"); }),
            "permission: no permission for " + path + "; use sudo")
      << "nobody is to join root's group";
}

TEST_F(Client, FindsTheOnlySocket) {
  auto error = [&] {
    try {
      return findSocket("", folder_, folder_ / "etc");
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
  };
  const std::string none = "no control socket in " + folder_.string() + ": no daemon runs; ";
  EXPECT_EQ(error(), none + "'braidctl setup' or 'braidctl join' makes a gateway");
  fs::create_directory(folder_ / "etc");
  std::ofstream(folder_ / "etc" / "edge.yaml");
  EXPECT_THAT(error(), testing::AnyOf(none + "start it: systemctl start braid@edge",
                                      none + "start it: braidd /etc/braid/edge.yaml"));
  std::ofstream(folder_ / "etc" / "van.yaml");
  EXPECT_THAT(error(), testing::MatchesRegex(".*start one: .*NAME.*, of edge van"));
  std::ofstream(folder_ / "notes.txt");
  std::ofstream(folder_ / "b.sock");
  EXPECT_EQ(findSocket("", folder_), folder_ / "b.sock");
  std::ofstream(folder_ / "a.sock");
  EXPECT_EQ(error(), "several daemons run; name one with --socket: a b");
  EXPECT_EQ(findSocket("a", folder_), folder_ / "a.sock");
  EXPECT_EQ(findSocket("a.sock", folder_), folder_ / "a.sock");
  EXPECT_EQ(findSocket("./a.sock", folder_), "./a.sock");
}

TEST_F(Client, AMistypedNameIsNoGatewayThatCouldBeStarted) {
  auto error = [&](const char* name) {
    try {
      return "found " + findSocket(name, folder_, folder_ / "etc");
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_THAT(error("edge"),
              testing::HasSubstr("'braidctl setup' or 'braidctl join' makes a gateway"))
      << "nothing is here";
  std::ofstream(folder_ / "hub.sock");
  fs::create_directory(folder_ / "etc");
  std::ofstream(folder_ / "etc" / "edge.yaml");
  EXPECT_EQ(error("hub"), "found " + (folder_ / "hub.sock").string());
  EXPECT_EQ(error("edge"), "found " + (folder_ / "edge.sock").string()) << "it can be started";
  const std::string neither = "there is no gateway egde: neither " +
                              (folder_ / "egde.sock").string() + " nor " +
                              (folder_ / "etc" / "egde.yaml").string();
  EXPECT_EQ(error("egde"), neither + "; did you mean edge?");
  EXPECT_THAT(error("concentrator"), testing::EndsWith("; name one with --socket: hub edge"));
}

// The control socket is where the configuration says.
TEST_F(Client, FindsASocketThatAConfigurationHasElsewhere) {
  const fs::path etc = folder_ / "etc", run = folder_ / "run", other = folder_ / "other.sock";
  for (const fs::path& folder : {etc, run}) fs::create_directory(folder);
  std::ofstream(etc / "edge.yaml")
      << "identity: {key: edge.key, certificate: edge.crt}\ndevice: {addresses: [10.9.0.1/24]}\n"
         "listen: ['0.0.0.0:4433']\npeers: []\ncontrol: {socket: "
      << other << "}\npeers-folder: " << folder_ / "peers.d"
      << "\n";
  auto find = [&](const char* given) {
    try {
      return findSocket(given, run, etc);
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(find("edge"), other);
  EXPECT_THAT(find(""), testing::StartsWith("no control socket in " + run.string() + ", nor at " +
                                            other.string() + ": no daemon runs; start it: "));
  std::ofstream{other};
  EXPECT_EQ(find(""), other);
  std::ofstream(run / "hub.sock");
  EXPECT_EQ(find(""), "several daemons run; name one with --socket: hub " + other.string());
}

}  // namespace
}  // namespace braid::client_test
