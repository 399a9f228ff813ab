#pragma once

// When a gateway that joins routes all traffic into its tunnel: what the user is told and asked,
// before the gateway starts and after.

#include <sys/types.h>
#include <unistd.h>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "ctl/join/gateway_yaml.h"
#include "ctl/join/new_gateway.h"
#include "host/network.h"
#include "inet/addresses.h"

namespace braid {

/// Between which addresses the user of this process is logged in by SSH.
struct SshLogin {
  Address from;  ///< the user's machine
  Address here;
  bool operator==(const SshLogin&) const = default;
};
/// The login of a process, by SSH_CONNECTION in its environment or in that of a process above it:
/// sudo does not hand that variable down. nullopt: there is none, or it cannot be read. `proc`: the
/// folder of processes.
std::optional<SshLogin> sshLogin(const std::string& proc = "/proc", pid_t process = getpid());

/// "all IPv4 and IPv6 traffic of this machine and of the networks behind it goes through the
/// tunnel; ...". Empty: the routes take all of no family.
std::string everythingText(const std::vector<Prefix>& routes);
/// A warning for a user whose login comes in by the address of an uplink, from a machine that the
/// routes take into the tunnel. Empty: nothing changes for this user. `confirmed`: whether he will
/// be asked later if he still reaches this machine.
std::string loginWarning(const std::optional<SshLogin>& login, const std::vector<Prefix>& routes,
                         const std::vector<PlannedUplink>& uplinks, const NetworkTable& table,
                         bool confirmed);

/// The parameters of agreeToEverything().
struct EverythingWish {
  const EdgePlan& plan;
  const NetworkTable& table;
  bool agreed = false;     ///< do not ask
  bool confirmed = false;  ///< waitForConfirmation() will ask after the start
};
/// Tells what everythingText() and loginWarning() say, and asks at the terminal whether to go on.
/// Throws std::runtime_error when the user does not want it.
void agreeToEverything(const EverythingWish& wish, UserTerminal& terminal, std::ostream& steps);

/// How long the user may take to confirm, by --confirm-within; zero: nobody is asked. Throws for a
/// time that is none. `asks`: somebody at a terminal may be asked.
Duration confirmationTime(const std::string& within, bool asks);
/// After the start: routes that take all of a family can cut off the user who works from outside.
/// Then no answer arrives, and this throws, so that the caller takes everything back.
void waitForConfirmation(const EdgePlan& plan, Duration limit, UserTerminal& terminal);

}  // namespace braid
