// The configuration reader and the file system: the file itself and the identity beside it.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gateway/dtls/identity.h"
#include "tests/unit/gateway/config/config_fixture.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::config_files_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ConfigFiles : public testing::Test {
 protected:
  ConfigFiles() {
    std::string name = (fs::temp_directory_path() / "braid-config-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    generateIdentity(folder_ / "edge.key", folder_ / "edge.crt", "edge");
    path_ = folder_ / "edge.yaml";
    write(edgeText());
  }
  ~ConfigFiles() override { fs::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  ConfigResult load() { return loadConfig(path_, options_); }
  std::string at(const std::string& place) { return path_.string() + place; }

  fs::path folder_, path_;
  LoadOptions options_;
};

TEST_F(ConfigFiles, RelativePathsCountFromTheFile) {
  ConfigResult result = load();
  ASSERT_THAT(errorsOf(result), ElementsAre());
  EXPECT_EQ(std::get<Config>(result).identity.key, (folder_ / "edge.key").string());
  EXPECT_EQ(std::get<Config>(result).control.socket, "/run/braid/edge.sock");
}

TEST_F(ConfigFiles, CredentialsComeFirst) {
  options_.credentials = folder_ / "credentials";
  fs::create_directory(options_.credentials);
  fs::rename(folder_ / "edge.key", fs::path(options_.credentials) / "edge.key");
  ConfigResult result = load();
  ASSERT_THAT(errorsOf(result), ElementsAre());
  EXPECT_EQ(std::get<Config>(result).identity.key, options_.credentials + "/edge.key");
  EXPECT_EQ(std::get<Config>(result).identity.certificate, (folder_ / "edge.crt").string());
}

TEST_F(ConfigFiles, AbsolutePathsStay) {
  write(with(edgeText(), "key: edge.key", "key: " + (folder_ / "edge.key").string()));
  EXPECT_THAT(errorsOf(load()), ElementsAre());
}

TEST_F(ConfigFiles, MissingIdentityIsReportedAtBothKeys) {
  fs::remove(folder_ / "edge.key");
  fs::remove(folder_ / "edge.crt");
  EXPECT_THAT(errorsOf(load()),
              ElementsAre(StartsWith(at(":1:17: identity.key: ") + (folder_ / "edge.key").string() +
                                     ": cannot be opened"),
                          StartsWith(at(":1:40: identity.certificate: ") +
                                     (folder_ / "edge.crt").string())));
}

TEST_F(ConfigFiles, KeyThatOthersCanReadIsRefused) {
  for (mode_t mode : {0640, 0604, 0660}) {
    chmod((folder_ / "edge.key").c_str(), mode);
    EXPECT_THAT(errorsOf(load()),
                ElementsAre(testing::AllOf(StartsWith(at(":1:17: identity.key: ")),
                                           HasSubstr("; run: chmod 600 "))));
  }
}

TEST_F(ConfigFiles, CertificateOfAnotherKey) {
  generateIdentity(folder_ / "b.key", folder_ / "b.crt", "b");
  fs::rename(folder_ / "b.crt", folder_ / "edge.crt");
  EXPECT_THAT(errorsOf(load()),
              ElementsAre(testing::AllOf(StartsWith(at(":1:40: identity.certificate: ")),
                                         HasSubstr("is not the certificate of the key"))));
}

TEST_F(ConfigFiles, IdentityIsNotReadWhenNotAskedFor) {
  fs::remove(folder_ / "edge.key");
  options_.checkIdentity = false;
  EXPECT_THAT(errorsOf(load()), ElementsAre());
}

TEST_F(ConfigFiles, APresharedKeyIsReadFromItsFile) {
  const fs::path file = folder_ / "hub.psk";
  write(with(edgeText(), "    endpoints:", "    psk: hub.psk\n    endpoints:"));
  EXPECT_THAT(errorsOf(load()), ElementsAre(AllOf(HasSubstr("peers[0].psk: " + file.string()),
                                                  HasSubstr("cannot be opened"))));
  std::ofstream(file) << "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
  fs::permissions(file, fs::perms::owner_read | fs::perms::group_read);
  EXPECT_THAT(errorsOf(load()), ElementsAre(HasSubstr("; run: chmod 600 " + file.string())));
  fs::permissions(file, fs::perms::owner_read);
  ConfigResult result = load();
  ASSERT_THAT(errorsOf(result), ElementsAre());
  const PeerConfig& peer = std::get<Config>(result).peers.at(0);
  EXPECT_EQ(peer.psk, file.string());
  ASSERT_TRUE(peer.options.psk);
  EXPECT_EQ(peer.options.psk->bytes[31], 31);

  // When another gateway joins, the key in use stays, whatever has become of its file.
  const Config inUse = std::get<Config>(result);
  EXPECT_EQ(unappliedEdits(inUse, options_), "");
  fs::remove(file);
  ConfigResult joined = withFragment(inUse, folder_ / "none.yaml", std::nullopt, options_);
  ASSERT_THAT(errorsOf(joined), ElementsAre());
  EXPECT_EQ(std::get<Config>(joined).peers.at(0).options.psk, peer.options.psk);
  std::ofstream(file) << "HwECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
  fs::permissions(file, fs::perms::owner_read);
  EXPECT_EQ(unappliedEdits(inUse, options_), file.string() + " was changed since it was read");

  options_.checkIdentity = false;
  EXPECT_FALSE(std::get<Config>(load()).peers.at(0).options.psk) << "not asked for";
  write(with(edgeText(), "    endpoints:", "    psk: ''\n    endpoints:"));
  EXPECT_THAT(errorsOf(load()), ElementsAre(HasSubstr("peers[0].psk: is no file name")));
}

TEST_F(ConfigFiles, OwnPinIsNoPeer) {
  write(with(edgeText(), kPinA, formatPin(readPin(folder_ / "edge.crt"))));
  EXPECT_THAT(
      errorsOf(load()),
      ElementsAre(
          at(":9:10: peers[0].pin: is this gateway's own pin; put the pin of the other gateway")));
}

TEST_F(ConfigFiles, FileThatCannotBeRead) {
  fs::remove(path_);
  EXPECT_THAT(
      errorsOf(load()),
      ElementsAre(
          at(": cannot be opened: No such file or directory; check the path and the permissions")));
  EXPECT_THAT(errorsOf(loadConfig(folder_)),
              ElementsAre(folder_.string() + ": is no regular file; name the configuration "
                                             "file itself"));
  EXPECT_THAT(errorsOf(loadConfig("/dev/zero")), ElementsAre(HasSubstr("is no regular file")));
}

TEST_F(ConfigFiles, FileBeyondTheSizeLimit) {
  write(std::string(kMaxConfigBytes + 1, '#'));
  EXPECT_THAT(errorsOf(load()), ElementsAre(at(": is larger than 1 MiB; shorten the file")));
}

}  // namespace
}  // namespace braid::config_files_test
