#pragma once

// What braidctl needs of the machine to start a gateway: signals that wait, the service
// manager, and an echo request through the tunnel.

#include <csignal>
#include <string>
#include <vector>

#include "base/time.h"
#include "inet/addresses.h"

namespace braid {

/// Delays SIGINT, SIGTERM, SIGHUP and SIGPIPE while such an object exists, so that Ctrl-C or a
/// hangup in the middle of a change takes effect only where the change can be reverted: in check().
/// What comes after that, while it is reverted, is ignored.
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

/// Whether systemd runs this machine (sd_booted(3)).
bool hasSystemd();
/// Whether the package's service for OpenWrt is here: /etc/init.d/braid, which runs one gateway.
bool hasInitScript();
/// The command that starts the daemon of /etc/braid/NAME.yaml.
std::string startCommand(const std::string& name);
/// What runProgram() returns besides exit statuses, as a shell does.
inline constexpr int kProgramNotFound = 127;
inline constexpr int kProgramNotStarted = 126;
inline constexpr int kEndedBySignal = 128;  ///< and the signal's number
/// Runs a program, found by PATH, without a shell. Returns its exit status, or one of the numbers
/// above. `output`: receives its standard output and standard error; nullptr: it writes to those of
/// this process. `input`: its standard input; nullptr: empty with an `output`, else this process's.
/// With an `output` it does not use the terminal, and Ctrl-C there ends it only if it `mayBeEnded`.
int runProgram(const std::vector<std::string>& words, std::string* output = nullptr,
               const std::string* input = nullptr, bool mayBeEnded = false);
/// Enables and starts the unit braid@NAME. False when systemctl fails, or Ctrl-C ends it; `said`
/// then receives what systemctl wrote.
bool startUnit(const std::string& name, std::string& said);
/// Stops and disables it. Ctrl-C does not prevent that; what systemctl says of a failure is written
/// to the standard error.
void stopUnit(const std::string& name);

/// Sends ICMP echo requests from `own` until `to` answers. Returns false after `patience`. Needs
/// CAP_NET_RAW. Throws std::runtime_error when the system gives no socket for it.
bool waitForEcho(const Address& own, const Address& to, Duration patience);

}  // namespace braid
