#pragma once

#include <string>

namespace braid {

/// Makes a folder that is not there yet, as systemd makes a StateDirectory: mode 0750, whatever the umask.
/// Its parent must be there, and on the way to it only root and this process's user may put something else in
/// the place of a folder: no folder is made below one of another user, one that others may write to without
/// the sticky bit, or through another user's symbolic link. `user`: whose it shall be, with the user's group;
/// empty: this process's. What is there stays as it is. Gives what went wrong; empty: the folder is there.
std::string makeOwnFolder(const std::string& folder, const std::string& user = {});

}  // namespace braid
