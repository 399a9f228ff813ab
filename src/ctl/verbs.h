#pragma once

// What braidctl can do, one file per kind of verb. Each writes its result to `out` and throws
// std::runtime_error with a reason and remedy when it cannot.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace braid {

/// Asks the daemon `cmd` (status, paths, flows, peers, reload) and shows the answer as a table, or as it is.
/// `socket`: a path, a name (edge: /run/braid/edge.sock), or empty for the only one in /run/braid.
void query(const std::string& cmd, const std::string& socket, bool json, std::ostream& out);
/// Asks the daemon what proactive recovery does and shows it, of all peers or of the one with this name.
void recovery(const std::string& peer, const std::string& socket, bool json, std::ostream& out);
/// Lets the daemon write the recovery trace to this file (added to it), which the caller must be allowed to
/// write.
void traceOn(const std::string& file, const std::string& socket, bool json, std::ostream& out);
void traceOff(const std::string& socket, bool json, std::ostream& out);
/// Says in plain words what was bad in the last so many seconds and what was done about it.
void explainPast(double sinceSeconds, const std::string& socket, bool json, std::ostream& out);
/// What `braidctl test` is asked for.
struct TestWish {
  std::string peer;                ///< empty: the only one that is up
  std::vector<std::string> paths;  ///< empty: each, and then all together
  double seconds = 5;              ///< of each run, at most 60
  uint64_t bytes = 500'000'000;    ///< of each run
  bool metered = false;            ///< metered paths without asking
  bool json = false;
  std::string socket;
};
/// Latency, loss and throughput of a peer's paths, with a progress bar at a terminal.
void testPaths(const TestWish& wish, std::ostream& out);
/// Peers, paths and flows, live at a terminal, else (and with `once`) one look at them. `json`: a line of JSON each second
/// with the status and the flows, until it is interrupted; with `once` one.
void top(const std::string& socket, bool once, bool json, std::ostream& out);
/// `out` is the standard output, and that a terminal.
bool isTerminal(const std::ostream& out);
/// The version of braidctl and, if `socket` is given, of the daemon there.
void version(const std::string& socket, bool json, std::ostream& out);
/// Writes NAME.key (mode 0600) and NAME.crt into `folder` and prints the pin.
void keygen(const std::string& name, const std::string& folder, bool json, std::ostream& out);
/// Prints the pin of a certificate file.
void pin(const std::string& certificate, bool json, std::ostream& out);
/// Checks a configuration file. Its mistakes are thrown, one per line; with `json` they are part of the result. False: there
/// are mistakes.
bool check(const std::string& file, bool json, std::ostream& out);
/// Checks the configurations of a folder against each other and prints what does not fit. False: there are errors.
bool checkFleet(const std::string& folder, bool json, std::ostream& out);

}  // namespace braid
