#include "gateway/daemon.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <new>
#include <string>
#include <utility>

#include "gateway/confinement.h"
#include "host/linux/process.h"

namespace braid {

namespace {
constexpr Duration kSettled = 5s;  // after the start, and after a peer came up or went down
}

Daemon::Daemon(Config config, LoadOptions loading, bool changeUser)
    : term_(loop_, SIGTERM, [this] { stop(); }),
      interrupt_(loop_, SIGINT, [this] { stop(); }),
      hangup_(loop_, SIGHUP, [this] { reload(); }),
      path_(config.control.socket),
      host_(loop_),
      gateway_(std::move(config), std::move(loading), host_),
      deadlineTimer_(loop_, [] {}),  // beforeWait() does what is due
      watchdogTimer_(loop_,
                     [this] {
                       notify::watchdog();
                       watchdogTimer_.arm(monotonicNow() + notify::watchdogInterval());
                     }),
      settledTimer_(loop_, returnProgramPages),
      prepare_(loop_, [this] { beforeWait(); }) {
  ControlHandler& handler = *this;
  control_ =
      std::make_unique<ControlServer>(loop_.raw(), path_, gateway_.config().control.group, handler);
  unconfined_ = confine(gateway_.config(), changeUser);
  gateway_.start();
}

Daemon::~Daemon() = default;

bool Daemon::run() {
  if (notify::watchdogInterval() > Duration::zero()) watchdogTimer_.arm(monotonicNow());
  settledTimer_.arm(monotonicNow() + kSettled);
  spdlog::info("braid is ready: {}", gateway_.summary());
  notify::ready(gateway_.summary());
  loop_.run();
  return !gateway_.failed();
}

// Runs once per turn of the loop, after all events were handed to the gateway.
void Daemon::beforeWait() {
  if (!holdMemoryReserve()) throw std::bad_alloc();
  if (gateway_.failed()) return stop();
  bool more = gateway_.runOnce();
  if (gateway_.peersUp() != peersUp_) {
    peersUp_ = gateway_.peersUp();
    notify::status(gateway_.summary());
    settledTimer_.arm(monotonicNow() + kSettled);
  }
  deadlineTimer_.arm(gateway_.nextDeadline());
  prepare_.keepAwake(more);
}

void Daemon::stop() {
  notify::stopping();
  control_.reset();
  gateway_.stop();
  loop_.stop();
}

std::string Daemon::reload() {
  notify::reloading();
  std::string problems = gateway_.reload();
  notify::ready(gateway_.summary());
  return problems;
}

GatewayStatus Daemon::gatewayStatus() {
  GatewayStatus out = gateway_.status();
  out.pid = static_cast<uint64_t>(::getpid());
  out.unconfined = unconfined_;
  return out;
}

}  // namespace braid
