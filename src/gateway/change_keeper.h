#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/log.h"
#include "host/host_network.h"

namespace braid {

/// Puts back what others take away of the gateway's changes to the host: a network manager that starts anew
/// flushes addresses, routes and rules that it does not know.
class ChangeKeeper {
 public:
  /// Others change several things one after the other; what is put back between is taken away again.
  static constexpr Duration kSettle = 100ms;
  /// Between two tries at the least, for who takes things away without end; the longer one while the host
  /// refuses.
  static constexpr Duration kPause = 1s, kLongestPause = 64s;

  /// Both must outlive this.
  ChangeKeeper(HostNetwork& network, LogLimiter& log) : network_(network), log_(log) {}

  /// Something may be gone: look for it soon.
  void suspect(Time now);
  /// When to call onTimer().
  Time deadline() const { return deadline_; }
  void onTimer(Time now);

 private:
  HostNetwork& network_;
  LogLimiter& log_;
  Time deadline_ = kNever;
  Time earliest_ = Time::min();
  Duration pause_ = kPause;
};

}  // namespace braid
