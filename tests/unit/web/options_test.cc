#include "web/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace braid::options_test {
namespace {

using testing::HasSubstr;

struct WebOptionsTest : testing::Test {
  WebOptionsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "braid-web-XXXXXX").string();
    folder = mkdtemp(name.data());
    write("token", "correct-horse-battery\nsecond line\n");
    write("short", "1234\n");
  }
  ~WebOptionsTest() override { std::filesystem::remove_all(folder); }

  void write(const char* name, const char* text) const {
    std::ofstream(folder / name) << text;
    std::filesystem::permissions(folder / name, std::filesystem::perms(0600));
  }
  WebOptions read(std::vector<std::string> words) {
    std::vector<const char*> argv{"braid-web", "/run/x.sock"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    int code = -1;
    std::optional<WebOptions> options =
        readWebOptions(static_cast<int>(argv.size()), argv.data(), code);
    if (!options) throw std::runtime_error("exit " + std::to_string(code));
    return *options;
  }
  std::string problem(const std::vector<std::string>& words) {
    try {
      read(words);
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "";
  }
  std::filesystem::path folder;
};

TEST_F(WebOptionsTest, IsForThisHostAloneUnlessToldOtherwise) {
  WebOptions options = read({});
  ASSERT_EQ(options.listen.tcp.size(), 1u);
  EXPECT_EQ(options.listen.tcp[0].toString(), "127.0.0.1:9380");
  EXPECT_EQ(options.socket, "/run/x.sock");
  EXPECT_TRUE(options.token.empty());
  EXPECT_EQ(read({"--listen", "[::1]:80", "--listen", "127.1.2.3"}).listen.tcp[1].toString(),
            "127.1.2.3:9380");
}

TEST_F(WebOptionsTest, AUnixSocketNeedsNoToken) {
  WebOptions options = read({"--listen", "unix:/run/x/web.sock", "--group", "www-data"});
  EXPECT_THAT(options.listen.sockets, testing::ElementsAre("/run/x/web.sock"));
  EXPECT_EQ(options.listen.group, "www-data");
  EXPECT_TRUE(options.listen.tcp.empty()) << "nobody else of the machine reaches it";
  EXPECT_EQ(read({"--listen", "unix:/a", "--listen", "127.0.0.1"}).listen.tcp.size(), 1u);
  EXPECT_THAT(problem({"--listen", "unix:web.sock"}), HasSubstr("no complete path"));
  EXPECT_THAT(problem({"--listen", "unix:"}), HasSubstr("no complete path"));
  EXPECT_THAT(problem({"--group", "www-data"}), HasSubstr("--group needs a Unix socket"));
  EXPECT_THAT(problem({"--listen", "unix:/a", "--listen", "0.0.0.0"}), HasSubstr("needs"));
}

TEST_F(WebOptionsTest, ElsewhereATokenAndTlsAreNeeded) {
  std::string token = folder / "token";
  for (const char* open :
       {"0.0.0.0", "0.0.0.0:9380", "[::]:9380", "192.0.2.1:443", "[2001:db8::1]:1"}) {
    EXPECT_THAT(problem({"--listen", open}),
                HasSubstr("needs --token-file, --certificate and --key"))
        << open;
    EXPECT_THAT(problem({"--listen", open, "--token-file", token}), HasSubstr("needs")) << open;
    EXPECT_THAT(problem({"--listen", open, "--certificate", "c", "--key", "k"}), HasSubstr("needs"))
        << open;
    EXPECT_THAT(problem({"--listen", "127.0.0.1", "--listen", open}), HasSubstr("needs")) << open;
    EXPECT_EQ(
        problem({"--listen", open, "--token-file", token, "--certificate", "c", "--key", "k"}), "")
        << open;
  }
  EXPECT_THAT(problem({"--certificate", "c"}), HasSubstr("go together"));
}

TEST_F(WebOptionsTest, TheTokenIsTheFirstLineOfItsFileAndNotTooShort) {
  EXPECT_EQ(read({"--token-file", folder / "token"}).token, "correct-horse-battery");
  EXPECT_THAT(problem({"--token-file", folder / "short"}), HasSubstr("16 characters at least"));
  EXPECT_THAT(problem({"--token-file", folder / "none"}), HasSubstr("cannot be read"));
}

TEST_F(WebOptionsTest, OnlyTheOwnerMayReadTheToken) {
  for (unsigned mode : {0640u, 0604u, 0660u, 0602u}) {
    std::filesystem::permissions(folder / "token", std::filesystem::perms(mode));
    EXPECT_EQ(problem({"--token-file", folder / "token"}),
              "--token-file " + (folder / "token").string() +
                  ": others than its owner can read it; run: chmod 600 " +
                  (folder / "token").string());
  }
  std::filesystem::permissions(folder / "token", std::filesystem::perms(0400));
  EXPECT_EQ(problem({"--token-file", folder / "token"}), "");
  EXPECT_THAT(problem({"--token-file", folder}), HasSubstr("is not a file"));
}

// As set by systemd from 254 on: mode 0440, and a folder that others may not enter.
TEST_F(WebOptionsTest, ACredentialOfTheServiceMayLookAsIfItsGroupCouldReadIt) {
  std::filesystem::permissions(folder / "token", std::filesystem::perms(0440));
  EXPECT_THAT(problem({"--token-file", folder / "token"}), HasSubstr("chmod 600"));
  setenv("CREDENTIALS_DIRECTORY", folder.c_str(), 1);
  std::string own = problem({"--token-file", "token"});
  std::filesystem::permissions(folder / "token", std::filesystem::perms(0444));
  std::string open = problem({"--token-file", "token"});
  unsetenv("CREDENTIALS_DIRECTORY");
  if (getgid() == 0) {
    EXPECT_EQ(own, "");  // without an access control list: when the group is root's
  }
  EXPECT_THAT(open, HasSubstr("chmod 600"));
}

TEST_F(WebOptionsTest, CredentialsOfTheServiceAreFoundByName) {
  setenv("CREDENTIALS_DIRECTORY", folder.c_str(), 1);
  WebOptions options =
      read({"--token-file", "token", "--certificate", "c.pem", "--key", "/etc/k.pem"});
  unsetenv("CREDENTIALS_DIRECTORY");
  EXPECT_EQ(options.token, "correct-horse-battery");
  EXPECT_EQ(options.certificate, folder / "c.pem");
  EXPECT_EQ(options.key, "/etc/k.pem");
}

TEST_F(WebOptionsTest, SaysWhatIsWrong) {
  EXPECT_THAT(problem({"--listen", "router.lan:80"}), HasSubstr("use ADDRESS:PORT"));
  EXPECT_THAT(problem({"--log-level", "loud"}), HasSubstr("exit "));
  EXPECT_THAT(problem({"--no-such"}), HasSubstr("exit "));
  EXPECT_EQ(problem({"--version"}), "exit 0");
}

}  // namespace
}  // namespace braid::options_test
