#pragma once

// The daemon's answers as text for people. The functions accept any JSON: a member that is missing
// or of another type shows as "-".

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace braid {

std::string statusText(const nlohmann::json& answer);
std::string peersText(const nlohmann::json& answer);
std::string pathsText(const nlohmann::json& answer);
std::string recoveryText(const nlohmann::json& answer);
std::string flowsText(const nlohmann::json& answer);

}  // namespace braid
