#pragma once

#include <csignal>

namespace braid {

/// Who presses Ctrl-C, or hangs up, while something is half done, is heard where it can be taken back: SIGINT, SIGTERM and
/// SIGHUP wait while there is such an object, and SIGPIPE, too.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Throws std::runtime_error when one of the first three waits.
  static void check();

 private:
  sigset_t before_;
};

}  // namespace braid
