#pragma once

#include <sys/stat.h>

#include <string>

namespace braid {

/// Whether an open file is its owner's alone, or a credential of ours. `info`: of the file; `path`: its name.
///
/// `credentials`: the folder of the service manager's credentials; empty: none. systemd from 254 on gives a file there to
/// the service's user by an access control list, and the file's mode then looks as if a group might read it (0440). A file
/// in that folder may be so when it and the folder belong to root or to us, others may not enter the folder, and the list
/// names nobody but us and root; without a list, when the group is root's.
bool isPrivate(int file, const struct stat& info, const std::string& path, const std::string& credentials);

}  // namespace braid
