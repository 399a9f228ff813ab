#include "host/linux/notify.h"

#include <systemd/sd-daemon.h>
#include <time.h>

namespace braid::notify {

void ready(const std::string& line) {
  sd_notify(0, ("READY=1\nSTATUS=" + line).c_str());
}

void reloading() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  auto us = static_cast<unsigned long long>(t.tv_sec) * 1'000'000 +
            static_cast<unsigned long long>(t.tv_nsec) / 1000;
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", us);
}

void stopping() {
  sd_notify(0, "STOPPING=1");
}
void status(const std::string& line) {
  sd_notify(0, ("STATUS=" + line).c_str());
}
void watchdog() {
  sd_notify(0, "WATCHDOG=1");
}

Duration watchdogInterval() {
  uint64_t us = 0;
  if (sd_watchdog_enabled(0, &us) <= 0) return Duration::zero();
  return std::chrono::microseconds(us / 2);
}

}  // namespace braid::notify
