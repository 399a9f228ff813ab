#pragma once

// The verbs that connect two machines: invite and setup at the concentrator, join at the edge.
// Errors are thrown as in verbs.h.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace braid {

struct InviteOptions {
  std::string name;
  std::vector<std::string> addresses, networks;
  std::string validFor = "1d";
  std::string socket;
  bool json = false;
};
/// Makes the daemon create an invitation. Its line is written to `out`, remarks to `err`.
void invite(const InviteOptions& options, std::ostream& out, std::ostream& err);

/// Options that setup and join share.
struct NewGateway {
  std::string name;  ///< of the files and the unit
  std::string folder = "/etc/braid";
  std::vector<std::string>
      networks;      ///< on this side; {"none"}: none; empty: asks, or takes those that it finds
  bool yes = false;  ///< asks nothing and agrees to everything
  bool keepRouter = false;  ///< leaves forwarding and NAT of this host unchanged
  bool dryRun = false;      ///< shows what would be written
  bool noStart = false;
  bool json = false;  ///< prints only the result, as JSON
};

struct SetupOptions : NewGateway {
  std::vector<std::string>
      tunnel;  ///< addresses of this end with their lengths; empty: 10.99.0.1/24 and, where there
               ///< is IPv6, a random fdxx::1/64
  uint16_t port = 4433;
  std::string device = "braid0";  ///< of the tunnel; each gateway on a host needs its own
};
/// Makes this machine a concentrator. Steps and result are written to `out`. When `out` is for
/// JSON, what the user still has to do is written to `err`.
void setup(const SetupOptions& options, std::ostream& out, std::ostream& err);

struct JoinOptions : NewGateway {
  std::string line;  ///< the invitation; empty: from `file`, else from the standard input or, when
                     ///< that is one, the terminal
  std::string file;
  std::vector<std::string> uplinks;  ///< interfaces; empty: those with a default route
};
/// Makes this machine an edge of the concentrator that invites it. Output as in setup().
void join(const JoinOptions& options, std::ostream& out, std::ostream& err);

/// The command line's values for the verbs of this file.
struct JoinArguments {
  InviteOptions invite;
  SetupOptions setup;
  JoinOptions join;
  std::string hidden;  ///< the argument LINE, which was overwritten in the command line
};

/// Adds invite, join and setup to `app`. The other arguments must outlive `app`.
void addJoinVerbs(CLI::App& app, JoinArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace braid
