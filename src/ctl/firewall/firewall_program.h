#pragma once

// The programs that make a host's packet filter, and the words in which each is asked.

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/firewall/firewall_steps.h"
#include "ctl/firewall/openings.h"

namespace braid {

/// The program that made a chain which drops something.
enum class FirewallProgram : uint8_t {
  kUfw,
  kFirewalld,
  kDocker,
  kLibvirt,
  kIptables,  ///< rules by hand, or by a program that is not known here
  kNft,
};

FirewallProgram programOf(const Obstacle& obstacle, const NftFirewall& wall);
const char* nameOf(FirewallProgram program);
/// Whether the program keeps rules of others: in chains that it reads again after its reload.
bool keepsRules(FirewallProgram program);
/// Whether the program can let this through and no more. firewalld cannot tell connections that are
/// taken over for streams from those to the host itself.
bool canOpen(FirewallProgram program, const Opening& opening);

/// What the steps are for.
struct FirewallTask {
  std::string name;    ///< of the gateway: marks its rules
  std::string device;  ///< the tunnel's interface
  bool hasSystemd = false;
};

/// The steps by which the program lets these through. Asks firewalld for the zones of interfaces.
std::vector<FirewallStep> stepsFor(FirewallProgram program, const std::vector<Obstacle>& obstacles,
                                   const FirewallTask& task);

/// A rule in the words of ufw(8), without "ufw" and "route"; of iptables(8), without the chain; and
/// of nft(8). `isForBoth`: for a table of both address families (inet).
std::vector<std::string> ufwWords(const PassRule& rule);
std::vector<std::string> iptablesWords(const PassRule& rule, const std::string& comment);
std::vector<std::string> nftWords(const PassRule& rule, const std::string& comment,
                                  bool isForBoth = true);
/// A "rich rule" of firewalld.
std::string richRule(const PassRule& rule);

}  // namespace braid
