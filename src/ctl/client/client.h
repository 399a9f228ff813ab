#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

namespace braid {

/// Exit codes of braidctl, beside kExitUsage.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  ///< not done; the reason is on the error stream
inline constexpr int kExitUnknown = 2;  ///< doctor could not check anything, or not everything

/// The folder of the configurations.
inline constexpr char kConfigFolder[] = "/etc/braid";
/// The folder of the daemons' control sockets.
inline constexpr char kRunFolder[] = "/run/braid";

/// The path of a configuration: a path stays as it is; a name means NAME.yaml in /etc/braid.
std::string configFile(const std::string& given);

/// The path of the socket that the user means. A path stays as it is. A bare name means NAME.sock
/// in `folder`, or `control.socket` of the configuration NAME.yaml in `configs`. Empty means the
/// only socket in `folder` or of those configurations. Throws NoPermission, or std::runtime_error
/// with a remedy when there is none, or more than one.
std::string findSocket(const std::string& given, const std::string& folder = kRunFolder,
                       const std::string& configs = kConfigFolder);

/// A socket that this process may not use: a daemon may run, and may not.
class NoPermission : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sends {"cmd":cmd} to the daemon at this socket, with a descriptor unless it is -1, and returns
/// the answer. Throws NoPermission, or std::runtime_error when no daemon answers within 5 seconds,
/// or when the answer is not a JSON object or reports an error.
nlohmann::json ask(const std::string& socket, const std::string& cmd, int descriptor = -1);
/// Like ask(), with arguments (a JSON object) beside the command.
nlohmann::json askWith(const std::string& socket, const std::string& cmd,
                       const nlohmann::json& arguments);

}  // namespace braid
