#include "host/linux/resume_watch.h"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace braid::resume_watch_test {
namespace {

ByteView bytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

using namespace std::string_literals;

const std::string kEvent =
    "change@/devices/platform/vmgenid\0ACTION=change\0SUBSYSTEM=platform\0NEW_VMGENID=1\0SEQNUM=7\0"s;

TEST(ResumeWatchTest, ANewGenerationIsToldFromOtherEvents) {
  ASSERT_EQ(kEvent.back(), '\0');
  EXPECT_TRUE(isNewGeneration(bytesOf(kEvent)));
  EXPECT_TRUE(isNewGeneration(bytesOf("NEW_VMGENID=1"))) << "without its last byte";
  for (const std::string& other : {""s, "\0"s, "add@/devices/x\0ACTION=add\0"s, "NEW_VMGENID=12\0"s,
                                   "XNEW_VMGENID=1\0"s, "NEW_VMGENID=\0001\0"s})
    EXPECT_FALSE(isNewGeneration(bytesOf(other))) << other;
}

TEST(ResumeWatchTest, NothingIsSeenWhileTheMachineRuns) {
  Loop loop;
  ResumeWatch watch(loop);
  for (int i = 0; i < 1000; ++i) {
    loop.runOnce(false);
    EXPECT_EQ(watch.take(), std::nullopt);
  }
}

// Programs that may configure the network namespace can send to the kernel's group, too.
TEST(ResumeWatchTest, AnEventOfAnotherProgramIsNotBelieved) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  std::thread([] {
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    Loop loop;
    ResumeWatch watch(loop);
    UniqueFd sender(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));
    sockaddr_nl group{};
    group.nl_family = AF_NETLINK;
    group.nl_groups = 1;
    ASSERT_EQ(::sendto(sender.get(), kEvent.data(), kEvent.size(), 0,
                       reinterpret_cast<const sockaddr*>(&group), sizeof group),
              static_cast<ssize_t>(kEvent.size()));
    for (int i = 0; i < 10; ++i) loop.runOnce(false);
    EXPECT_EQ(watch.take(), std::nullopt);
  }).join();
}

}  // namespace
}  // namespace braid::resume_watch_test
