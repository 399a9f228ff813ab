#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace braid {

/// Where daemons put their control sockets.
inline constexpr char kRunFolder[] = "/run/braid";

/// The socket that the user means: a path stays, a bare name is NAME.sock in `folder`, nothing is the only
/// *.sock there. Throws std::runtime_error when there is none or more than one.
std::string findSocket(const std::string& given, const std::string& folder = kRunFolder);

/// Sends {"cmd":cmd} to the daemon at this socket, with a descriptor unless it is -1, and gives its answer.
/// Throws std::runtime_error when no daemon answers within 5 seconds, the answer is no JSON object or says no.
nlohmann::json ask(const std::string& socket, const std::string& cmd, int descriptor = -1);
/// The same with arguments beside the command: an object.
nlohmann::json askWith(const std::string& socket, const std::string& cmd, const nlohmann::json& arguments);

}  // namespace braid
