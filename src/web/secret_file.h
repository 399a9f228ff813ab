#pragma once

#include <string>

namespace braid {

/// The folder of systemd's credentials; empty: none.
std::string credentialsFolder();
/// Reads a file of at most 64 KiB that only its owner may read, or that is one of this process's
/// credentials. Throws std::runtime_error with a remedy that names `option`.
std::string readSecretFile(const std::string& option, const std::string& path);

}  // namespace braid
