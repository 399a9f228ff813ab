#pragma once

// Options and steps that the verbs setup and join share.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "ctl/join/gateway_yaml.h"
#include "gateway/dtls/identity.h"
#include "gateway/network/network_reconciler.h"
#include "host/linux/files.h"
#include "inet/addresses.h"

namespace braid {

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

/// Asks at this process's terminal, even if the standard input is something else.
class UserTerminal {
 public:
  UserTerminal();
  ~UserTerminal();
  UserTerminal(const UserTerminal&) = delete;
  UserTerminal& operator=(const UserTerminal&) = delete;

  /// Whether there is a terminal.
  bool isThere() const { return fd_ >= 0; }
  /// Returns the line that is typed, without its line end; nullopt: none. `hidden`: the typed text
  /// is not shown.
  std::optional<std::string> ask(const std::string& question, bool hidden = false);
  /// Asks for yes, and waits at most `limit` for it. Anything else that is typed, and silence, is a
  /// no. What was typed before the question does not count. Throws std::runtime_error when SIGINT,
  /// SIGTERM or SIGHUP is pending (Interruption).
  bool askYesWithin(const std::string& question, Duration limit);
  /// Asks for yes or no; an empty line means `usual`.
  bool askYes(const std::string& question, bool usual);

 private:
  int fd_;
};

/// Overwrites invitations in the process's arguments, so that ps does not show them, and returns
/// the first of them. Call it before anything else.
std::string hideInvitations(int argc, char** argv);

/// The functions below throw std::runtime_error with a remedy.

/// The files of the new gateway, in a folder that may be written. They must not exist yet, except
/// when an attempt that was killed left them.
GatewayFiles newFiles(const NewGateway& options);
/// The networks on this side: those in the options, else `found` when the user agrees. `asks`: a
/// user at a terminal is asked even when nothing was found.
std::vector<Prefix> chooseNetworks(const NewGateway& options, const std::vector<Prefix>& found,
                                   bool asks, UserTerminal& terminal);
/// Whether the user agrees to something. Without a terminal, only `--yes` agrees.
bool agrees(const NewGateway& options, const std::string& question, UserTerminal& terminal);
/// Prevents other braidctl processes from creating a gateway in this folder. Removes what an
/// attempt that was killed left.
class FolderLock {
 public:
  explicit FolderLock(const NewGateway& options);

 private:
  LockFile lock_;
};
/// Prints the configuration that would be written: as JSON, or as YAML below a line with the file's
/// name and `remark`.
void showYaml(const NewGateway& options, const GatewayFiles& files, const std::string& yaml,
              const std::string& remark, std::ostream& out);
/// Returns the identity in these files; creates it when it does not exist. `all` removes what was
/// created.
Identity prepareIdentity(const GatewayFiles& files, Transaction& all);
/// Writes the configuration, and checks it together with its identity. A line at its top marks it
/// as unfinished for the next braidctl. `all` removes it.
void putYaml(const GatewayFiles& files, const std::string& yaml, Transaction& all);
/// Writes the configuration without that line: it is finished. Errors are written to `out`, because
/// the gateway already runs.
void finishYaml(const GatewayFiles& files, const std::string& yaml, std::ostream& out);
/// Whether the gateway of these files runs here, and reaches a peer.
bool isUp(const GatewayFiles& files);
/// The JSON result that setup and join share.
nlohmann::json madeGateway(const GatewayFiles& files, const Identity& identity,
                           const std::vector<InterfaceAddress>& addresses,
                           const std::vector<Prefix>& networks, const RouterWish& wish,
                           bool started);
/// What became of the host's firewall.
struct FirewallAnswer {
  bool allowed = false;               ///< its program was told to let the gateway's packets through
  std::vector<std::string> warnings;  ///< what is still dropped
};
/// Has the host's firewall let the gateway's packets through when it drops them and the user
/// agrees; `all` takes that back. `out` says what is dropped, by which chain.
FirewallAnswer openFirewall(const NewGateway& options, const GatewayFiles& files, Transaction& all,
                            UserTerminal& terminal, std::ostream& out);
/// Starts the unit when systemd runs; `all` stops it. Returns false when the user must start it;
/// `out` then says how.
bool startGateway(const NewGateway& options, const GatewayFiles& files, Transaction& all,
                  std::ostream& out);

}  // namespace braid
