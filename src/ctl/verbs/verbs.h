#pragma once

// The command line of braidctl, and its verbs, one file per kind of verb. Each verb writes its
// result to `out`, and throws std::runtime_error with a reason and remedy when it fails.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "ctl/join/new_gateway.h"

namespace braid {

/// The whole program: reads the command line, runs the verb, returns the exit code. `invitation`:
/// an invitation that stood in the command line and was overwritten there (hideInvitations()).
int runBraidctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                const std::string& invitation = {});

/// Sends `cmd` (status, paths, peers, reload) to the daemon and prints the answer as a
/// table, or with `json` as it is. `socket`: a path, a name (edge: /run/braid/edge.sock), or empty
/// for the only socket in /run/braid. `verbose`: the inside of the gateway as well, for status.
void query(const std::string& cmd, const std::string& socket, bool json, std::ostream& out,
           bool verbose = false);

/// Shows flows and streams by their rate in one second. `all`: the idle ones as well. `json`: the
/// daemon's answer.
void flows(const std::string& socket, bool all, bool json, std::ostream& out);
/// Prints what proactive recovery does for all peers, or for the peer with this name.
void recovery(const std::string& peer, const std::string& socket, bool json, std::ostream& out);
/// Has the daemon start no new streams, and waits until none is open, at most `seconds`. Prints how
/// many a restart resets.
void drain(unsigned seconds, const std::string& socket, bool json, std::ostream& out);
/// Makes the daemon append the recovery trace to this file. The caller must be allowed to write it.
void traceOn(const std::string& file, const std::string& socket, bool json, std::ostream& out);
void traceOff(const std::string& socket, bool json, std::ostream& out);
/// Prints in plain words what went wrong in the last `sinceSeconds`, and what was done about it.
void explainPast(double sinceSeconds, const std::string& socket, bool json, std::ostream& out);
/// The options of `braidctl test`.
struct TestWish {
  std::string peer;                ///< empty: the only one that is up
  std::vector<std::string> paths;  ///< empty: each alone, and then all together
  double seconds = 5;              ///< of each run, at most 60
  uint64_t bytes = 500'000'000;    ///< of each run
  bool metered = false;            ///< use metered paths without asking
  bool json = false;
  std::string socket;
};
/// Measures latency, loss and throughput of a peer's paths; shows a progress bar at a terminal.
void testPaths(const TestWish& wish, std::ostream& out);
/// Shows peers, paths and flows: live at a terminal, once elsewhere or with `once`. `json`: prints
/// a line of JSON each second with the status and the flows, until it is interrupted; with `once`,
/// one line.
void top(const std::string& socket, bool once, bool json, std::ostream& out);
/// Whether `out` is the standard output, and that is a terminal.
bool isTerminal(const std::ostream& out);
/// Prints the version of braidctl and, if `socket` is given, of the daemon there.
void version(const std::string& socket, bool json, std::ostream& out);
/// Writes NAME.key (mode 0600) and NAME.crt into `folder` and prints the pin.
void keygen(const std::string& name, const std::string& folder, bool json, std::ostream& out);
/// Prints the pin of a certificate file.
void pin(const std::string& certificate, bool json, std::ostream& out);
/// Checks a configuration file. Throws its mistakes, one per line; with `json`, prints them as part
/// of the result. Returns false when there are mistakes.
bool check(const std::string& file, bool json, std::ostream& out);
/// Checks the configurations of a folder against each other and prints what does not fit together.
/// Returns false when there are errors.
bool checkFleet(const std::string& folder, bool json, std::ostream& out);

/// Hands the name servers of this configuration (`dns`) to systemd-resolved or resolvconf. Without
/// any, those of an earlier call are taken back. `file`: a path.
void dnsSet(const std::string& file, bool json, std::ostream& out);
/// Takes back what dnsSet() handed over for this configuration, whatever that says by now.
void dnsRemove(const std::string& file, bool json, std::ostream& out);
/// Prints the name servers of each uplink, those of the whole host, and those of `dns`.
void dnsShow(const std::string& file, bool json, std::ostream& out);
/// Prints what the host's packet filter drops of a gateway's packets, and the commands that let
/// them through. Returns false when something is dropped.
bool showFirewall(const std::string& file, bool json, std::ostream& out);
/// Has the filter's own program let them through. `intoChains`: adds rules to chains of no known
/// program as well. Returns false when something is still dropped.
bool allowFirewall(const std::string& file, bool intoChains, bool json, std::ostream& out);
/// Takes back what allowFirewall() has changed.
void removeFirewall(const std::string& file, bool json, std::ostream& out);

// The verbs that connect two machines: invite and setup at the concentrator, join at the edge.

struct InviteOptions {
  std::string name;
  std::vector<std::string> addresses, networks;
  std::string validFor = "1d";
};
/// Makes the daemon create an invitation. Its line is written to `out`, remarks to `err`.
void invite(const InviteOptions& options, const std::string& socket, bool json, std::ostream& out,
            std::ostream& err);

struct SetupOptions : NewGateway {
  std::vector<std::string>
      tunnel;  ///< addresses of this end with their lengths; empty: 10.99.0.1/24 and, where there
               ///< is IPv6, a random fdxx::1/64
  uint16_t port = 4433;
  std::string device = "braid0";  ///< of the tunnel; each gateway on a host needs its own
  bool betweenPeers = false;      ///< edges may reach each other; false: asks, `yes` does not agree
};
/// Makes this machine a concentrator. Steps and result are written to `out`. When `out` is for
/// JSON, what the user still has to do is written to `err`.
void setup(const SetupOptions& options, std::ostream& out, std::ostream& err);

struct JoinOptions : NewGateway {
  std::string line;  ///< the invitation; empty: from `file`, else from the standard input or, when
                     ///< that is one, the terminal
  std::string file;
  std::vector<std::string> uplinks, metered;  ///< as UplinkWords has them
  bool everything = false;  ///< agrees that all traffic goes through the tunnel; else asks
  std::string confirmWithin = "2min";  ///< how long the user may take to confirm; 0: does not ask
};
/// Makes this machine an edge of the concentrator that invites it. Output as in setup().
void join(const JoinOptions& options, std::ostream& out, std::ostream& err);

}  // namespace braid
