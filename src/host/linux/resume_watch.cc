#include "host/linux/resume_watch.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace braid {

namespace {

constexpr unsigned kKernelEvents = 1;   // the group of what the kernel sends; udev has another
constexpr size_t kLongestEvent = 8192;  // the kernel's are shorter than 4096 bytes
constexpr unsigned kMostEventsAtOnce = 256;
constexpr std::string_view kNewGeneration = "NEW_VMGENID=1";  // drivers/virt/vmgenid.c

Duration timeOf(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

ClockReading readClocks() {
  ClockReading now;
  now.monotonic = timeOf(CLOCK_MONOTONIC);
  now.boot = timeOf(CLOCK_BOOTTIME);
  now.wall = timeOf(CLOCK_REALTIME);
  now.took = timeOf(CLOCK_MONOTONIC) - now.monotonic;
  return now;
}

UniqueFd openEvents() {
  UniqueFd fd(
      ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelEvents;
  if (fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  return fd;
}

}  // namespace

bool isVirtualMachine() {
  for (const char* path : {"/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible"}) {
    if (std::ifstream(path).good()) return true;
  }
  std::ifstream processors("/proc/cpuinfo");
  for (std::string line; std::getline(processors, line);) {
    if (line.starts_with("flags")) return (line + ' ').find(" hypervisor ") != std::string::npos;
  }
  return false;
}

// A message is "ACTION@PATH" and then KEY=VALUE, each ended by a zero byte.
bool isNewGeneration(ByteView uevent) {
  std::string_view rest(reinterpret_cast<const char*>(uevent.data()), uevent.size());
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == kNewGeneration) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

ResumeWatch::ResumeWatch(Loop& loop) : clocks_(isVirtualMachine()), events_(openEvents()) {
  clocks_.take(readClocks());
  if (events_) watcher_.emplace(loop, events_.get(), [this] { onEvents(); });
}

std::optional<std::string> ResumeWatch::take() {
  std::optional<std::string> seen = clocks_.take(readClocks());
  if (std::exchange(isNewGeneration_, false))
    return "this virtual machine was resumed from a snapshot, or copied";
  return seen;
}

// Programs of this network namespace can send such messages, too, if they may configure it: the
// port is 0 in those of the kernel alone. The messages that are left are read in the next turn.
void ResumeWatch::onEvents() {
  std::array<uint8_t, kLongestEvent> message;
  for (unsigned i = 0; i < kMostEventsAtOnce; ++i) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    ssize_t n = ::recvfrom(events_.get(), message.data(), message.size(), 0,
                           reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
    if (n < 0) return;
    if (size == sizeof from && from.nl_pid == 0)
      isNewGeneration_ |= isNewGeneration(ByteView(message).first(static_cast<size_t>(n)));
  }
}

}  // namespace braid
