#pragma once

// The verbs that make two machines a pair: invite and setup at the concentrator, join at the edge. As those of verbs.h.

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
/// Has the daemon make an invitation: its line goes to `out`, what else is to be said to `err`.
void invite(const InviteOptions& options, std::ostream& out, std::ostream& err);

/// What setup and join have in common.
struct NewGateway {
  std::string name;  ///< of files and unit
  std::string folder = "/etc/braid";
  std::vector<std::string>
      networks;             ///< on this side; {"none"}: none; empty: asks, or takes those that it finds
  bool yes = false;         ///< asks nothing, and agrees
  bool keepRouter = false;  ///< leaves forwarding and NAT of this host as they are
  bool dryRun = false;      ///< shows what would be written
  bool noStart = false;
  bool json = false;  ///< the result alone, as JSON
};

struct SetupOptions : NewGateway {
  std::vector<std::string>
      tunnel;  ///< addresses of this end with their lengths; empty: 10.99.0.1/24 and, where there is IPv6, a random fdxx::1/64
  uint16_t port = 4433;
  std::string device = "braid0";  ///< of the tunnel; each gateway of a host has its own
};
/// Makes this machine a concentrator. The steps and the result go to `out`; what is left to do all the same goes to `err` when
/// `out` is for JSON.
void setup(const SetupOptions& options, std::ostream& out, std::ostream& err);

struct JoinOptions : NewGateway {
  std::string
      line;  ///< the invitation; empty: from `file`, else from the standard input or, when that is one, the terminal
  std::string file;
  std::vector<std::string> uplinks;  ///< interfaces; empty: those with a default route
};
/// Makes this machine an edge of the concentrator that invites it. As setup().
void join(const JoinOptions& options, std::ostream& out, std::ostream& err);

}  // namespace braid
