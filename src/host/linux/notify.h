#pragma once

#include <string>

#include "base/time.h"

namespace braid {

/// Tells the service manager about our state (sd_notify(3)); without one ($NOTIFY_SOCKET) all calls do
/// nothing.
namespace notify {

/// Start is complete; `status` is one line for `systemctl status`.
void ready(const std::string& status);
/// Reload began; ready() ends it. Carries MONOTONIC_USEC, as Type=notify-reload wants.
void reloading();
void stopping();
void status(const std::string& line);
void watchdog();
/// How often watchdog() is expected: half of what the manager allows; zero when it does not watch.
Duration watchdogInterval();

}  // namespace notify
}  // namespace braid
