#pragma once

#include <string>

namespace braid {

/// The folder of systemd's credentials; empty: none.
std::string credentialsFolder();
/// The text of a file of at most 64 KiB that only its owner may read, or that is a credential of ours. Throws
/// std::runtime_error with a remedy, which names `option`.
std::string readSecretFile(const std::string& option, const std::string& path);

}  // namespace braid
