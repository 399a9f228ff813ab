#pragma once

// `braidctl firewall`: looks at what the host's packet filter drops of a gateway's packets, and has
// the filter's own program let them through.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ctl/firewall/firewall_program.h"
#include "gateway/config/config.h"

namespace braid {

/// What drops packets of a gateway, and what lets them through.
struct FirewallState {
  struct Part {
    FirewallProgram program;
    std::vector<Obstacle> obstacles;
    std::vector<FirewallStep> steps;  ///< empty: the program cannot let these through
  };
  std::vector<Part> parts;          ///< by program
  std::vector<std::string> unread;  ///< parts of the filter that cannot be read, with the reason
};

/// Options of the verb.
struct FirewallWish {
  std::string file;         ///< the configuration
  bool intoChains = false;  ///< adds rules to chains of no known program as well
};

/// A remedy for what drops these packets, as a sentence.
std::string remedyFor(const Obstacle& obstacle, const NftFirewall& wall, const std::string& file);
/// What becomes of the gateway's packets because of it.
std::string consequenceOf(const Obstacle& obstacle);
/// Whether connections that would be dropped are carried in another way meanwhile, and nothing
/// better can be had of the program.
bool isHarmless(const Obstacle& obstacle, const NftFirewall& wall);
/// Warnings about rules that cannot be read: those of iptables-legacy. `root`: a folder used
/// instead of /.
std::vector<std::string> unreadFilters(const std::string& root = {});

/// Looks at the filter, and asks the programs for what their commands need. Throws SystemError when
/// the filter cannot be read.
FirewallState lookAtFirewall(const std::string& file, const Config& config);
/// What stands in the way, as lines for a person, each with chain and remedy; empty: nothing, or it
/// cannot be read.
std::vector<std::string> firewallWarnings(const std::string& file, const Config& config);

/// The result of allow().
struct FirewallChange {
  std::vector<FirewallStep> done;
  FirewallState left;  ///< what is still dropped
  /// What an earlier call changed and could not be taken back. It stays in the record.
  std::vector<std::string> problems;
};
/// Has the programs let the packets through. What it changes is recorded beside the configuration
/// (NAME.firewall) before it is changed. What an earlier call changed is taken back first. Throws
/// std::runtime_error; what this call changed is taken back then.
FirewallChange allowInFirewall(const FirewallWish& wish, const Config& config);
/// Takes back what the record says. Returns whether there was a record. Throws std::runtime_error
/// with what could not be taken back; it stays in the record, so that another call can try again.
bool removeFromFirewall(const std::string& file);
/// The file of the record.
std::string firewallRecord(const std::string& file);

}  // namespace braid
