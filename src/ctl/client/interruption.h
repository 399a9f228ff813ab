#pragma once

#include <csignal>

namespace braid {

/// Delays SIGINT, SIGTERM, SIGHUP and SIGPIPE while such an object exists, so that Ctrl-C or a
/// hangup in the middle of a change takes effect only where the change can be reverted: in check().
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Throws std::runtime_error when SIGINT, SIGTERM or SIGHUP is pending.
  static void check();

 private:
  sigset_t before_;
};

}  // namespace braid
