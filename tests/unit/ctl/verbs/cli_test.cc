// The whole program: verbs, outputs, exit codes.

#include "ctl/verbs/verbs.h"

#include <ev.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/printable.h"
#include "ctl/client/client.h"
#include "ctl/join/new_gateway.h"
#include "gateway/command_line.h"
#include "gateway/control/control.h"
#include "gateway/join/invitation.h"
#include "tests/temporary_folder.h"

namespace braid::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class Cli : public testing::Test {
 protected:
  int run(std::vector<std::string> words) {
    std::vector<const char*> argv{"braidctl"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    out_.str("");
    err_.str("");
    return runBraidctl(static_cast<int>(argv.size()), argv.data(), out_, err_);
  }

  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  std::ostringstream out_, err_;
};

class Daemon : public ControlHandler {
 public:
  explicit Daemon(const std::string& path)
      : loop_(ev_loop_new(0)), path_(path), server_(loop_.get(), path_, "", *this) {
    ev_async_init(&stop_,
                  [](struct ev_loop* loop, ev_async*, int) { ev_break(loop, EVBREAK_ALL); });
    ev_async_start(loop_.get(), &stop_);
    thread_ = std::thread([this] { ev_run(loop_.get(), 0); });
  }
  ~Daemon() override {
    ev_async_send(loop_.get(), &stop_);
    thread_.join();
  }
  TunnelStatus tunnelStatus() override { return {}; }
  std::vector<std::string> peers() override { return {"hub" + strange}; }
  std::optional<PeerStatus> peerStatus(size_t place, size_t) override {
    if (place > 0) return std::nullopt;
    PeerStatus peer;
    peer.name = "hub" + strange;
    peer.up = true;
    SubflowStatus& subflow = peer.subflows.emplace_back();
    subflow.uplink = subflow.path = "wifi" + strange;
    subflow.state = "active";
    subflow.deliveredBytes = delivered += 1000;
    SubflowStatus& dead = peer.subflows.emplace_back();
    dead.uplink = dead.path = "lte";
    dead.state = "failed";
    return peer;
  }
  GatewayStatus gatewayStatus() override {
    GatewayStatus gateway;
    gateway.version = "9.9" + strange;
    if (strange.empty()) return gateway;
    UplinkStatus& uplink = gateway.uplinks.emplace_back();
    uplink.name = uplink.interface = uplink.gateway = "wifi" + strange;
    uplink.portal = "http://x/" + strange;
    uplink.portalOpen = "open; " + strange;
    return gateway;
  }
  std::string reload() override {
    return reloads++ == 0 ? "" : "e.yaml:1:1: x: bad; fix" + strange;
  }
  std::string trace(UniqueFd file) override {
    if (!file) return ++tracesEnded, "";
    return write(file.get(), "here\n", 5) == 5 ? "" : "cannot write";
  }
  InviteResult invite(const InviteRequest& request) override {
    if (request.name == "taken")
      return {.problem = "there is a gateway 'taken' already" + strange, .line = {}, .note = {}};
    Invitation made;
    made.addresses = {{"192.0.2.1", 4433}};
    made.expires = 1795594200;
    return {.problem = {}, .line = formatInvitation(made), .note = "it is private" + strange};
  }
  const History& history() override { return past; }
  std::string startTest(const std::string& peer, const MeasureRequest& request) override {
    tests.push_back(peer + " " + request.path);
    left = 3;
    return peer == "hub" ? "" : "there is no peer " + peer;
  }
  void stopTest() override { left = 0; }
  std::pair<MeasureStatus, PeerStatus> testStatus() override {
    return {{"hub", tests.empty() ? "" : "wifi", left-- > 0, 1000, 2s}, *peerStatus(0, 0)};
  }
  uint64_t drain(Duration time) override {
    EXPECT_GT(time, 30s) << "also while the service manager restarts it";
    return open > 0 ? open-- : 0;
  }
  std::string strange;  ///< in all texts
  std::vector<std::string> tests;
  uint64_t open = 0;
  int left = 0;
  uint64_t delivered = 0;
  History past;
  std::atomic<int> reloads = 0, tracesEnded = 0;

 private:
  struct Destroy {
    void operator()(struct ev_loop* loop) const { ev_loop_destroy(loop); }
  };
  std::unique_ptr<struct ev_loop, Destroy> loop_;
  ControlPath path_;
  ControlServer server_;
  ev_async stop_{};
  std::thread thread_;
};

TEST_F(Cli, DrainsUntilNothingIsOpen) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  EXPECT_EQ(run({"drain", "--socket", path}), kExitOk);
  EXPECT_THAT(out_.str(), StartsWith("no stream is open: a restart resets none\n"));
  daemon.open = 2;
  EXPECT_EQ(run({"drain", "--socket", path, "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_.str()), nlohmann::json({{"open", 0}, {"open_before", 2}}));
}

TEST_F(Cli, ADrainWaitsNoLongerThanItMay) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  daemon.open = 1000;
  EXPECT_EQ(run({"drain", "--socket", path, "--seconds", "1"}), kExitOk);
  EXPECT_THAT(out_.str(),
              MatchesRegex("still open after 1 s: 9[89][0-9] of 1000 streams; a restart "
                           "resets them\n.*\n"));
  EXPECT_LT(daemon.open, 999u) << "asked more than once";
}

TEST_F(Cli, AsksADaemon) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  EXPECT_EQ(run({"status", "--socket", path}), kExitOk);
  EXPECT_THAT(out_.str(), StartsWith("braidd 9.9, up 0 s"));
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("process")));
  EXPECT_EQ(run({"status", "--verbose", "--socket", path}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("up 0 s, process"));
  EXPECT_EQ(run({"status", "--json", "--socket", path}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_.str())["peers"][0]["name"], "hub");
  for (const char* verb : {"paths", "flows", "peers"}) {
    EXPECT_EQ(run({verb, "--socket", path}), kExitOk) << verb;
    EXPECT_FALSE(out_.str().empty());
    EXPECT_EQ(run({verb, "--json", "--socket", path}), kExitOk) << verb;
    EXPECT_EQ(nlohmann::json::parse(out_.str())["ok"], true);
  }
  EXPECT_EQ(run({"version", "--socket", path}), kExitOk);
  EXPECT_THAT(out_.str(), testing::EndsWith("braidd 9.9\n"));
  EXPECT_EQ(run({"reload", "--socket", path}), kExitOk);
  EXPECT_EQ(run({"reload", "--socket", path}), kExitFailure);
  EXPECT_EQ(err_.str(), "e.yaml:1:1: x: bad; fix\n");
  EXPECT_EQ(daemon.reloads, 2);
}

TEST_F(Cli, PrintsAnInvitationAloneSoThatItCanBePiped) {
  std::string path = folder_ / "hub.sock";
  Daemon daemon(path);
  EXPECT_EQ(run({"invite", "van", "--socket", path}), kExitOk) << err_.str();
  EXPECT_TRUE(std::holds_alternative<Invitation>(parseInvitation(out_.str()))) << out_.str();
  EXPECT_THAT(err_.str(), HasSubstr("until 2026-11-25T08:10:00Z"));
  EXPECT_THAT(err_.str(), HasSubstr("Note: it is private"));
  EXPECT_EQ(run({"invite", "taken", "--socket", path}), kExitFailure);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "there is a gateway 'taken' already\n");
  EXPECT_EQ(run({"invite", "van", "--valid-for", "1s", "--socket", path}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("1min to 30d"));
  EXPECT_EQ(run({"invite", "van", "--json", "--socket", path}), kExitOk);
  const auto answer = nlohmann::json::parse(out_.str());
  EXPECT_EQ(answer["note"], "it is private");
  EXPECT_EQ(answer["expires_unix_s"], 1795594200);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(Cli, SetUpAsJsonIsOneObjectOfWhatWasMade) {
  std::vector<std::string> words{"setup",        "--yes",    "--no-start",   "--network",
                                 "10.77.1.0/24", "--tunnel", "10.77.0.1/24", "--dir",
                                 folder_,        "--json"};
  ASSERT_EQ(run(words), kExitOk) << err_.str();
  EXPECT_EQ(err_.str(), "");
  const auto made = nlohmann::json::parse(out_.str());
  EXPECT_EQ(made["file"], (folder_ / "concentrator.yaml").string());
  EXPECT_EQ(made["addresses"], nlohmann::json::array({"10.77.0.1/24"}));
  EXPECT_EQ(made["networks"], nlohmann::json::array({"10.77.1.0/24"}));
  EXPECT_EQ(made["port"], 4433);
  EXPECT_EQ(made["nat"], true);
  EXPECT_EQ(made["between_peers"], false) << "--yes does not join the networks of the edges";
  EXPECT_EQ(made["started"], false);
  EXPECT_EQ(made["dry_run"], false);
  ASSERT_EQ(run({"pin", folder_ / "concentrator.crt", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_.str())["pin"], made["pin"]);
  EXPECT_EQ(run(words), kExitFailure) << "it is there already";
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), HasSubstr("is there already"));
}

TEST_F(Cli, SetUpJoinsTheNetworksOfTheEdgesIfItIsTold) {
  ASSERT_EQ(run({"setup", "--yes", "--no-start", "--network", "10.77.1.0/24", "--tunnel",
                 "10.77.0.1/24", "--dir", folder_, "--dry-run", "--between-peers"}),
            kExitOk)
      << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("between-peers: on\n"));
}

TEST_F(Cli, WhatWouldBeWrittenCanBeHadAsJson) {
  Invitation made;
  made.addresses = {{"192.0.2.1", 4433}};
  made.expires = 1795594200;
  std::ofstream(folder_ / "line") << formatInvitation(made);
  const std::string dir = folder_ / "etc";
  const std::vector<std::vector<std::string>> verbs = {
      {"setup", "--tunnel", "10.77.0.1/24"},
      {"join", "--file", folder_ / "line", "--uplink", "lo"}};
  for (std::vector<std::string> words : verbs) {
    const std::string name = words[0] == "setup" ? "concentrator" : "edge";
    words.insert(words.end(), {"--dry-run", "--yes", "--network", "none", "--dir", dir});
    ASSERT_EQ(run(words), kExitOk) << err_.str();
    const std::string plain = out_.str();
    words.emplace_back("--json");
    ASSERT_EQ(run(words), kExitOk) << err_.str();
    const auto shown = nlohmann::json::parse(out_.str());
    EXPECT_EQ(shown["dry_run"], true);
    EXPECT_EQ(shown["file"], dir + "/" + name + ".yaml");
    EXPECT_THAT(plain, testing::EndsWith("\n" + shown["yaml"].get<std::string>()));
    EXPECT_THAT(plain, StartsWith("# Would be written to " + dir));
  }
  EXPECT_FALSE(fs::exists(dir));
}

TEST_F(Cli, JoinNamesWhatIsWrongWithALineAndWritesNothing) {
  std::string dir = folder_ / "etc";
  auto join = [&](const std::string& line) {
    std::ofstream(folder_ / "line") << line;
    return run({"join", "--file", folder_ / "line", "--dir", dir, "--yes", "--no-start"});
  };
  EXPECT_EQ(join("hello"), kExitFailure);
  EXPECT_THAT(err_.str(), StartsWith("this is no invitation"));
  EXPECT_EQ(join("braid-invitation-1/gw:1/abc"), kExitFailure);
  EXPECT_THAT(err_.str(), StartsWith("the invitation is not whole"));
  EXPECT_EQ(run({"join", "--network", "none", "--uplink", "lo", "hello", "--dir", dir}),
            kExitFailure);
  EXPECT_THAT(err_.str(), StartsWith("this is no invitation")) << "a list takes one word at a time";
  EXPECT_EQ(run({"join", "--file", folder_ / "none"}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("cannot be opened"));
  EXPECT_FALSE(fs::exists(dir));
}

TEST_F(Cli, AnInvitationInTheCommandLineIsOverwrittenThere) {
  Invitation made;
  made.addresses = {{"192.0.2.1", 4433}};
  std::string program = "braidctl", verb = "join", line = formatInvitation(made), option = "--yes";
  const std::string before = line;
  char* argv[] = {program.data(), verb.data(), line.data(), option.data(), nullptr};
  EXPECT_EQ(hideInvitations(4, argv), before);
  EXPECT_EQ(line, std::string(before.size(), 'x'));
  EXPECT_EQ(verb + option, "join--yes");
}

TEST_F(Cli, ALineThatWasBrokenOrIsOfAnotherReleaseIsOverwrittenAndAFileIsNot) {
  std::string program = "braidctl", broken = " \n braid-invitation-1/gw:1/abc",
              other = "braid-invitation-2/gw:1/abc", file = "braid-invitation-van.txt",
              path = "/root/braid-invitation-1/van";
  char* argv[] = {program.data(), broken.data(), other.data(), file.data(), path.data(), nullptr};
  hideInvitations(5, argv);
  for (const std::string& word : {broken, other}) EXPECT_EQ(word, std::string(word.size(), 'x'));
  EXPECT_EQ(file, "braid-invitation-van.txt");
  EXPECT_EQ(path, "/root/braid-invitation-1/van");
}

TEST_F(Cli, MeasuresEachPath) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  EXPECT_EQ(run({"test", "--socket", path}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("to hub, through the tunnel"));
  EXPECT_THAT(out_.str(), HasSubstr("wifi"));
  EXPECT_THAT(out_.str(), testing::ContainsRegex("lte +down +- +- +- +-\n"));
  EXPECT_EQ(run({"test", "hub", "--path", "wifi", "--json", "--socket", path}), kExitOk)
      << err_.str();
  nlohmann::json answer = nlohmann::json::parse(out_.str());
  ASSERT_EQ(answer["runs"].size(), 1u);
  EXPECT_GT(answer["runs"][0]["bytes_per_s"].get<double>(), 0);
  EXPECT_EQ(daemon.tests, (std::vector<std::string>{"hub wifi", "hub wifi"}));
  EXPECT_EQ(run({"test", "--path", "lte", "--path", "wifi", "--json", "--socket", path}), kExitOk)
      << err_.str();
  answer = nlohmann::json::parse(out_.str());
  ASSERT_EQ(answer["runs"].size(), 2u) << "--path may be repeated";
  nlohmann::json dead = answer["runs"][0];
  EXPECT_EQ(dead["state"], "failed");
  EXPECT_TRUE(dead["bytes_per_s"].is_null()) << "nothing is known, which is not 0";
  EXPECT_EQ(daemon.tests.size(), 3u) << "a path that is down is not filled";
  EXPECT_EQ(run({"test", "nobody", "--socket", path}), kExitFailure);
  EXPECT_EQ(err_.str(), "no peer 'nobody'; up: hub\n");
  EXPECT_EQ(run({"test", "--seconds", "61", "--socket", path}), kExitUsage);
}

TEST_F(Cli, ShowsTopOnceWhereThereIsNoTerminal) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  EXPECT_EQ(run({"top", "--socket", path}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("braid 9.9  up 0 s  paths"));
  EXPECT_THAT(out_.str(), HasSubstr("REPAIRED"));
  EXPECT_THAT(out_.str(), HasSubstr("wifi"));
  EXPECT_THAT(out_.str(), HasSubstr("no flows"));
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos) << "nothing for a terminal";
}

TEST_F(Cli, DoctorNamesTheMistakesOfAFile) {
  std::string file = folder_ / "edge.yaml";
  std::ofstream(file) << "uplinks: nonsense\n";
  EXPECT_EQ(run({"doctor", file}), kExitFailure);
  EXPECT_THAT(out_.str(), HasSubstr("WRONG    configuration: " + file));
  EXPECT_THAT(out_.str(), HasSubstr("Remedy: "));
  EXPECT_EQ(run({"doctor", file, "--json"}), kExitFailure);
  nlohmann::json answer = nlohmann::json::parse(out_.str());
  EXPECT_GE(answer["findings"].size(), 1u);
  EXPECT_EQ(answer["findings"][0]["check"], "configuration");
  EXPECT_EQ(run({"doctor", "--socket", folder_ / "none.sock"}), kExitUnknown);
  EXPECT_THAT(err_.str(), HasSubstr("no daemon answers"));
}

TEST_F(Cli, ExplainsThePast) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  EXPECT_EQ(run({"explain", "--socket", path}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("The last 10 min, from "));
  EXPECT_EQ(run({"explain", "--since", "90s", "--json", "--socket", path}), kExitOk) << err_.str();
  nlohmann::json answer = nlohmann::json::parse(out_.str());
  EXPECT_EQ(answer["until_unix_s"].get<double>() - answer["from_unix_s"].get<double>(), 90);
  EXPECT_EQ(run({"explain", "--since", "soon", "--socket", path}), kExitUsage);
  EXPECT_EQ(run({"explain", "--since", "2h", "--socket", path}), kExitUsage);
}

// Names, errors and events of a daemon hold texts of peers, name servers and portals.
TEST_F(Cli, NoVerbShowsWhatATerminalWouldObey) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  daemon.strange = "\x1b[2J \u009b2J \u202egnp\u202c \x7f";
  daemon.past.add("portal", "wifi" + daemon.strange, "a login" + daemon.strange,
                  static_cast<double>(std::time(nullptr)));
  const std::vector<std::vector<std::string>> verbs{
      {"status"},       {"status", "--verbose"}, {"paths"},         {"peers"},   {"top"},
      {"recovery"},     {"recovery", "nobody"},  {"explain"},       {"version"}, {"test"},
      {"test", "none"}, {"invite", "taken"},     {"invite", "van"}, {"reload"},  {"reload"}};
  for (std::vector<std::string> words : verbs) {
    words.insert(words.end(), {"--socket", path});
    for (bool json : {false, true}) {
      if (json && words[0] == "top") continue;
      if (json) words.emplace_back("--json");
      run(words);
      const std::string text = out_.str() + err_.str();
      EXPECT_NE(text, "") << words[0];
      EXPECT_EQ(text, printableLines(text)) << words[0] << (json ? " --json" : "");
      if (words[0] != "reload") EXPECT_THAT(text, HasSubstr("2J")) << words[0] << " shows none";
    }
  }
}

TEST_F(Cli, ShowsRecoveryOfOnePeer) {
  std::string path = folder_ / "edge.sock";
  Daemon daemon(path);
  EXPECT_EQ(run({"recovery", "--socket", path}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("PEER  POLICY"));
  EXPECT_THAT(out_.str(), HasSubstr("trace off"));
  EXPECT_EQ(run({"recovery", "hub", "--json", "--socket", path}), kExitOk);
  nlohmann::json answer = nlohmann::json::parse(out_.str());
  EXPECT_EQ(answer["peers"].size(), 1u);
  EXPECT_EQ(answer["k_max"], 128);
  EXPECT_EQ(run({"recovery", "nobody", "--socket", path}), kExitFailure);
  EXPECT_EQ(err_.str(), "no peer 'nobody'; there are: hub\n");
}

TEST_F(Cli, LetsTheDaemonTraceIntoAFileOfTheCaller) {
  std::string path = folder_ / "edge.sock", file = folder_ / "t.trace";
  Daemon daemon(path);
  EXPECT_EQ(run({"trace", "on", file, "--socket", path}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("goes to " + file));
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  EXPECT_EQ(line, "here");
  EXPECT_EQ(run({"trace", "off", "--socket", path}), kExitOk);
  EXPECT_EQ(daemon.tracesEnded, 1);
  EXPECT_EQ(run({"trace", "on", file, "--json", "--socket", path}), kExitOk) << err_.str();
  EXPECT_EQ(nlohmann::json::parse(out_.str()), (nlohmann::json{{"ok", true}, {"file", file}}));
  EXPECT_EQ(run({"trace", "off", "--json", "--socket", path}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_.str()), (nlohmann::json{{"ok", true}}));
  EXPECT_EQ(daemon.tracesEnded, 2);
  EXPECT_EQ(run({"trace", "on", folder_ / "missing" / "t", "--socket", path}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("No such file or directory"));
  EXPECT_EQ(run({"trace", "on", "/dev/null", "--socket", path}), kExitFailure);
  EXPECT_EQ(run({"trace", "on", file, "--socket", folder_ / "none.sock"}), kExitFailure);
}

TEST_F(Cli, NoDaemon) {
  EXPECT_EQ(run({"status", "--socket", (folder_ / "none.sock").string()}), kExitFailure);
  EXPECT_EQ(err_.str(), "no daemon answers at " + (folder_ / "none.sock").string() +
                            "; start it, or correct --socket\n");
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(run({"status", "--socket", "none"}), kExitFailure);
  EXPECT_THAT(err_.str(), testing::AnyOf(StartsWith("no control socket in /run/braid: no daemon"),
                                         StartsWith("there is no gateway none: neither")));
}

TEST_F(Cli, MakesKeysAndShowsPins) {
  EXPECT_EQ(run({"keygen", "edge", "--dir", folder_}), kExitOk) << err_.str();
  struct stat info {};
  ASSERT_EQ(stat((folder_ / "edge.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  std::string made = out_.str();
  EXPECT_EQ(run({"pin", folder_ / "edge.crt"}), kExitOk);
  EXPECT_THAT(out_.str(), StartsWith("sha256:"));
  EXPECT_THAT(made, HasSubstr(out_.str().substr(0, out_.str().size() - 1)));
  EXPECT_EQ(run({"keygen", "edge", "--dir", folder_}), kExitFailure) << "keys are not overwritten";
  EXPECT_THAT(err_.str(), HasSubstr("exists already"));
  for (const char* name : {"", "../x", "a b", ".x"})
    EXPECT_EQ(run({"keygen", name}), kExitFailure) << name;
  EXPECT_EQ(run({"pin", folder_ / "edge.key"}), kExitFailure);
}

TEST_F(Cli, KeysPinsAndVersionsAsJson) {
  ASSERT_EQ(run({"keygen", "edge", "--dir", folder_, "--json"}), kExitOk) << err_.str();
  const auto made = nlohmann::json::parse(out_.str());
  EXPECT_EQ(made["certificate"], (folder_ / "edge.crt").string());
  ASSERT_EQ(run({"pin", folder_ / "edge.crt", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_.str())["pin"], made["pin"]);
  ASSERT_EQ(run({"version", "--json"}), kExitOk);
  EXPECT_TRUE(nlohmann::json::parse(out_.str())["braidctl"].is_string());
}

TEST_F(Cli, ChecksAFile) {
  ASSERT_EQ(run({"keygen", "edge", "--dir", folder_}), kExitOk);
  std::ofstream(folder_ / "edge.yaml")
      << "identity: {key: edge.key, certificate: edge.crt}\nlisten: ['0.0.0.0:1']\n"
         "peers: [{name: a, pin: 'sha256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=',"
         " prefixes: [10.0.0.0/8]}]\n";
  EXPECT_EQ(run({"check", folder_ / "edge.yaml"}), kExitOk) << err_.str();
  std::ofstream(folder_ / "edge.yaml") << "a: 1\nb: 2\n";
  EXPECT_EQ(run({"check", folder_ / "edge.yaml"}), kExitFailure);
  std::string text = err_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << "every mistake on its line: " << text;
  EXPECT_EQ(run({"check", "--json", folder_ / "edge.yaml"}), kExitFailure);
  const auto mistakes = nlohmann::json::parse(out_.str())["mistakes"];
  ASSERT_EQ(mistakes.size(), 4u);
  EXPECT_EQ(mistakes[0]["line"], 1);
  EXPECT_EQ(mistakes[0]["key"], "'a'");
  EXPECT_FALSE(mistakes[0]["remedy"].get<std::string>().empty());
}

TEST_F(Cli, AWarningIsNoMistake) {
  ASSERT_EQ(run({"keygen", "edge", "--dir", folder_}), kExitOk);
  std::ofstream(folder_ / "edge.yaml")
      << "identity: {key: edge.key, certificate: edge.crt}\nlisten: ['0.0.0.0:1']\n"
         "device: {routes: [0.0.0.0/0]}\n"
         "peers: [{name: a, pin: 'sha256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=',"
         " prefixes: [0.0.0.0/0]}]\n";
  EXPECT_EQ(run({"check", folder_ / "edge.yaml"}), kExitOk) << err_.str();
  EXPECT_EQ(out_.str().find("warning: "), 0u) << out_.str();
  EXPECT_EQ(run({"check", "--json", folder_ / "edge.yaml"}), kExitOk);
  const auto answer = nlohmann::json::parse(out_.str());
  EXPECT_TRUE(answer["mistakes"].empty());
  ASSERT_EQ(answer["warnings"].size(), 1u);
  EXPECT_EQ(answer["warnings"][0]["key"], "device.routes");
}

TEST_F(Cli, ResultThatCannotBeWrittenIsAFailure) {
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(run({"version"}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("cannot write the result"));
}

TEST_F(Cli, UsageErrors) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"dance"},
                                             {"status", "--yaml"},
                                             {"keygen"},
                                             {"pin"},
                                             {"status", "x"},
                                             {"reload", "--once"},
                                             {"trace"},
                                             {"trace", "on"},
                                             {"trace", "off", "x"}}) {
    EXPECT_EQ(run(words), kExitUsage) << (words.empty() ? "" : words[0]);
    EXPECT_FALSE(err_.str().empty());
  }
  EXPECT_EQ(run({"version"}), kExitOk);
  EXPECT_THAT(out_.str(), StartsWith("braidctl "));
  const std::string version = out_.str();
  EXPECT_EQ(run({"--version"}), kExitOk);
  EXPECT_EQ(out_.str(), version);
}

TEST_F(Cli, HelpBeginsWithTheFirstSteps) {
  EXPECT_EQ(run({"--help"}), kExitOk);
  const std::string help = out_.str();
  size_t before = 0;
  for (const char* part :
       {"Usage: braidctl VERB ...", "\nFirst steps:\n", "\n  setup ", "\n  invite ", "\n  join ",
        "\n  check ", "\n  doctor ", "\nWhat a gateway does:\n", "\n  status ", "\n  recovery ",
        "\nKeeping it:\n", "\n  reload ", "\n  version ", "\nExamples:\n", "\n  braidctl setup "}) {
    const size_t at = help.find(part, before);
    ASSERT_NE(at, std::string::npos) << part << " behind the others in\n" << help;
    before = at;
  }
}

TEST_F(Cli, AnUnknownVerbSuggestsTheNearest) {
  EXPECT_EQ(run({"statu"}), kExitUsage);
  EXPECT_EQ(err_.str(),
            "braidctl: there is no verb statu; did you mean status? 'braidctl --help' lists all\n");
  EXPECT_EQ(run({"status", "--jsno"}), kExitUsage);
  EXPECT_EQ(err_.str(),
            "braidctl status: there is no option --jsno; did you mean --json?\n"
            "usage: braidctl status [--verbose] [--json] [--socket SOCKET]\n");
  EXPECT_EQ(run({"explain", "--since", "2h"}), kExitUsage);
  EXPECT_THAT(err_.str(), StartsWith("braidctl explain: --since must be a time from 1s to 1h, such "
                                     "as 10m, not '2h'\nusage: "));
  EXPECT_EQ(run({"setup", "--port", "99999"}), kExitUsage);
  EXPECT_THAT(err_.str(), StartsWith("braidctl setup: --port must be a number from 1 to 65535"));
}

}  // namespace
}  // namespace braid::cli_test
