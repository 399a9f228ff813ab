#include "host/linux/notify.h"

#ifdef BRAID_SYSTEMD
#include <systemd/sd-daemon.h>
#endif
#include <time.h>

namespace braid::notify {

namespace {

#ifdef BRAID_SYSTEMD
// A word that the service manager does not hear may end the daemon (READY, WATCHDOG), and what refused it (no memory,
// no free descriptor, a full queue) may be over already.
void tell(const std::string& words) {
  for (int tries = 0; tries < 3 && sd_notify(0, words.c_str()) < 0; ++tries) {
  }
}

uint64_t watchdogMicroseconds() {
  uint64_t us = 0;
  return sd_watchdog_enabled(0, &us) > 0 ? us : 0;
}
#else
void tell(const std::string&) {}

uint64_t watchdogMicroseconds() {
  return 0;
}
#endif

}  // namespace

void ready(const std::string& line) {
  tell("READY=1\nSTATUS=" + line);
}

void reloading() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  auto us = static_cast<unsigned long long>(t.tv_sec) * 1'000'000 +
            static_cast<unsigned long long>(t.tv_nsec) / 1000;
  tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(us));
}

void stopping() {
  tell("STOPPING=1");
}
void status(const std::string& line) {
  tell("STATUS=" + line);
}
void watchdog() {
  tell("WATCHDOG=1");
}

Duration watchdogInterval() {
  return std::chrono::microseconds(watchdogMicroseconds() / 2);
}

}  // namespace braid::notify
