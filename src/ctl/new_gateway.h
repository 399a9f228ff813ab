#pragma once

// Steps that setup and join share.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ctl/ask_user.h"
#include "ctl/gateway_yaml.h"
#include "ctl/join_verbs.h"
#include "gateway/dtls/identity.h"
#include "gateway/transaction.h"
#include "host/linux/lock_file.h"
#include "inet/prefix.h"

namespace braid {

/// All throw std::runtime_error with a remedy.

/// The files of the new gateway, which must not be there yet, or be left by an attempt that was killed; in a folder that
/// may be written.
GatewayFiles newFiles(const NewGateway& options);
/// The networks on this side: those that are named, else `found` when the user agrees.
std::vector<Prefix> chooseNetworks(const NewGateway& options, const std::vector<Prefix>& found,
                                   UserTerminal& terminal);
/// Whether the user agrees to something; without a terminal only `--yes` does.
bool agrees(const NewGateway& options, const std::string& question, UserTerminal& terminal);
/// While there is one, no other braidctl makes a gateway in this folder. Ends what is left of an attempt that was killed.
class FolderLock {
 public:
  explicit FolderLock(const NewGateway& options);

 private:
  LockFile lock_;
};
/// Shows the configuration that would be written: as YAML below a line that names the file and says `remark` of it, or as
/// JSON.
void showYaml(const NewGateway& options, const GatewayFiles& files, const std::string& yaml,
              const std::string& remark, std::ostream& out);
/// The identity in these files, made when it is not there; `all` takes back what was made.
Identity prepareIdentity(const GatewayFiles& files, Transaction& all);
/// Writes the configuration, with a line at its top by which the next braidctl knows that it is not finished, and checks
/// it together with its identity; `all` takes it back.
void putYaml(const GatewayFiles& files, const std::string& yaml, Transaction& all);
/// The configuration without that line: what was begun holds. What is wrong goes to `out`: the gateway runs.
void finishYaml(const GatewayFiles& files, const std::string& yaml, std::ostream& out);
/// Whether the gateway of these files runs here, and reaches a peer.
bool isUp(const GatewayFiles& files);
/// What setup and join have both made, for JSON.
nlohmann::json madeGateway(const GatewayFiles& files, const Identity& identity,
                           const std::vector<InterfaceAddress>& addresses,
                           const std::vector<Prefix>& networks, const RouterWish& wish, bool started);
/// Starts the unit when systemd runs; `all` stops it again. False when it is to be started by hand: how was written to `out`.
bool startGateway(const NewGateway& options, const GatewayFiles& files, Transaction& all, std::ostream& out);

}  // namespace braid
