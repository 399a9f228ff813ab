#pragma once

// Steps that setup and join share.

#include <iosfwd>
#include <string>
#include <vector>

#include "ctl/ask_user.h"
#include "ctl/gateway_yaml.h"
#include "ctl/join_verbs.h"
#include "gateway/dtls/identity.h"
#include "gateway/transaction.h"
#include "inet/prefix.h"

namespace braid {

/// All throw std::runtime_error with a remedy.

/// The files of the new gateway, which must not be there yet, in a folder that may be written.
GatewayFiles newFiles(const NewGateway& options);
/// The networks on this side: those that are named, else `found` when the user agrees.
std::vector<Prefix> chooseNetworks(const NewGateway& options, const std::vector<Prefix>& found,
                                   UserTerminal& terminal);
/// Whether the user agrees to something; without a terminal only `--yes` does.
bool agrees(const NewGateway& options, const std::string& question, UserTerminal& terminal);
/// The identity in these files, made when it is not there; `all` takes back what was made.
Identity prepareIdentity(const GatewayFiles& files, Transaction& all);
/// Writes the configuration and checks it together with its identity; `all` takes it back.
void putYaml(const GatewayFiles& files, const std::string& yaml, Transaction& all);
/// Starts the unit when systemd runs; `all` stops it again. False when it is to be started by hand: how was written to `out`.
bool startGateway(const NewGateway& options, const GatewayFiles& files, Transaction& all, std::ostream& out);

}  // namespace braid
