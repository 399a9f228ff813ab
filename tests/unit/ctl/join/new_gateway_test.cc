// The files that setup and join write, and what remains when they end in the middle.

#include "ctl/join/new_gateway.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ctl/client/service.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"

namespace braid::new_gateway_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct NewGatewayTest : testing::Test {
  NewGatewayTest() {
    options.name = "hub";
    options.folder = folder.file("etc");
    plan.files = {options.folder, options.name};
    plan.addresses = {{*Address::parse("10.99.0.1"), 24}};
    yaml = concentratorYaml(plan);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(options.folder))
      out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
  }
  std::string text() const {
    std::ifstream in(plan.files.yaml());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// An attempt is killed before it has finished, so it undoes nothing.
  void leaveUnfinished() {
    newFiles(options);
    Transaction all;
    prepareIdentity(plan.files, all);
    putYaml(plan.files, yaml, all);
    all.commit();
  }

  TemporaryFolder folder;
  NewGateway options;
  ConcentratorPlan plan;
  std::string yaml;
};

TEST_F(NewGatewayTest, AnEndBeforeTheCommitLeavesNothing) {
  newFiles(options);
  {
    FolderLock lock(options);
    Transaction all;
    prepareIdentity(plan.files, all);
    putYaml(plan.files, yaml, all);
    EXPECT_THAT(files(), ElementsAre(".braidctl.lock", "hub.crt", "hub.key", "hub.yaml"));
  }
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(NewGatewayTest, WhatAKilledAttemptLeftIsReplacedByTheNextOne) {
  leaveUnfinished();
  EXPECT_THAT(text(), StartsWith("# NOT FINISHED"));
  Pin pin = readPin(plan.files.certificate());
  newFiles(options);
  std::ostringstream out;
  {
    FolderLock lock(options);
    Transaction all;
    EXPECT_EQ(prepareIdentity(plan.files, all).pin, pin) << "it is the same gateway";
    putYaml(plan.files, yaml, all);
    finishYaml(plan.files, yaml, out);
    all.commit();
  }
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(text(), yaml);
  EXPECT_THAT(files(), ElementsAre("hub.crt", "hub.key", "hub.yaml"));
  EXPECT_THROW(newFiles(options), std::runtime_error) << "what is finished stays";
}

TEST_F(NewGatewayTest, AKeyWithoutItsCertificateIsGoodForTheNextAttempt) {
  leaveUnfinished();
  Pin pin = readPin(plan.files.certificate());
  fs::remove(plan.files.certificate());
  fs::remove(plan.files.yaml());
  {
    Transaction all;
    EXPECT_EQ(prepareIdentity(plan.files, all).pin, pin);
  }
  EXPECT_THAT(files(), ElementsAre("hub.key")) << "as it was before";
}

TEST_F(NewGatewayTest, FilesHaveTheirModesWhateverTheUmask) {
  mode_t before = umask(0);
  leaveUnfinished();
  std::ostringstream out;
  umask(0077);
  finishYaml(plan.files, yaml, out);
  umask(before);
  auto mode = [](const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  };
  EXPECT_EQ(mode(plan.files.key()), 0600u);
  EXPECT_EQ(mode(plan.files.yaml()), 0644u);
}

TEST_F(NewGatewayTest, OneMakesGatewaysInAFolderAtATime) {
  newFiles(options);
  FolderLock lock(options);
  try {
    FolderLock second(options);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(),
                StartsWith("lock " + options.folder + "/.braidctl.lock: held by a process of "));
    EXPECT_THAT(e.what(),
                HasSubstr("another braidctl makes a gateway in " + options.folder + ": wait"));
  }
}

TEST_F(NewGatewayTest, WhoLocksTheFolderHoldsNobodyUp) {
  newFiles(options);
  UniqueFd reader(open(options.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(reader.get(), LOCK_SH), 0);
  EXPECT_NO_THROW(FolderLock{options});
  EXPECT_THAT(files(), IsEmpty());
}

TEST(InterruptionTest, ASignalIsHeardWhereWhatWasDoneCanBeTakenBack) {
  Interruption held;
  EXPECT_NO_THROW(Interruption::check());
  raise(SIGINT);
  EXPECT_THROW(Interruption::check(), std::runtime_error);
  EXPECT_NO_THROW(Interruption::check()) << "once";
  EXPECT_EQ(runProgram({"sh", "-c", "kill -TERM $$; exit 3"}), kEndedBySignal + SIGTERM)
      << "not what we start";
}

TEST(InterruptionTest, WhoIsImpatientDoesNotEndWhatIsTakenBack) {
  Interruption held;
  raise(SIGTERM);
  EXPECT_THROW(Interruption::check(), std::runtime_error);
  raise(SIGINT);
  raise(SIGHUP);
}

TEST(RunProgramTest, TheStatusTellsWhatIsNotThereFromWhatDoesNotStartOrIsEnded) {
  TemporaryFolder folder;
  folder.write("text", "echo not a program");
  std::string output;
  EXPECT_EQ(runProgram({"sh", "-c", "exit 3"}), 3);
  EXPECT_EQ(runProgram({"no-such-program-of-braid"}), 127);
  // Under qemu-user the child shares no memory, so it cannot tell posix_spawn() why it failed.
  if (!std::getenv("BRAID_EMULATED"))
    EXPECT_EQ(runProgram({folder.file("text")}), 126) << "it is not executable";
  EXPECT_EQ(runProgram({"env", "no-such-program-of-braid"}, &output), 127);
  EXPECT_EQ(runProgram({"sh", "-c", "kill -KILL $$"}, &output), 128 + SIGKILL);
}

TEST(RunProgramTest, TheTerminalsSignalsReachOnlyAProgramThatUsesTheTerminal) {
  std::string output, ours = std::to_string(getpgrp());
  ASSERT_EQ(runProgram({"sh", "-c", "echo $$; cut -d' ' -f5 /proc/$$/stat"}, &output), 0);
  std::istringstream lines(output);
  std::string process, group;
  lines >> process >> group;
  EXPECT_EQ(process, group) << "a group of its own";
  EXPECT_EQ(runProgram({"sh", "-c", "test $(cut -d' ' -f5 /proc/$$/stat) = " + ours}), 0);
}

TEST(WaitForEchoTest, WithoutItsOwnAddressNobodyIsAsked) {
  if (geteuid() != 0) GTEST_SKIP() << "needs CAP_NET_RAW";
  Address own = *Address::parse("192.0.2.77"), loopback = *Address::parse("127.0.0.1");
  EXPECT_FALSE(waitForEcho(own, loopback, 300ms))
      << "another host may have the address to which it goes";
  EXPECT_TRUE(waitForEcho(loopback, loopback, 5s));
}

}  // namespace
}  // namespace braid::new_gateway_test
