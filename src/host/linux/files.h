#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "host/system.h"

namespace braid {

/// Creates a folder as systemd creates a StateDirectory: mode 0750, whatever the umask. A folder
/// that exists already is left as it is. The parent must exist, and only root and this process's
/// user may be able to replace a folder on the way to it: nothing is created below a folder that
/// belongs to another user, below one that others may write to without the sticky bit, or through
/// another user's symbolic link. `user`: the owner, with that user's group; empty: this process's.
/// Returns what went wrong; empty: the folder exists.
std::string makeOwnFolder(const std::string& folder, const std::string& user = {});

/// Whether an open file is private: only its owner may access it, or it is one of this service's
/// systemd credentials. `info`: fstat() of the file; `path`: its name.
///
/// `credentials`: the folder with the service manager's credentials; empty: none. From version 254
/// on, systemd gives the service's user access to a file there by an access control list, and the
/// file's mode then looks as if a group might read it (0440). A file in that folder is accepted
/// under these conditions: it and the folder belong to root or to this user; others may not enter
/// the folder; and the list names only this user and root or, without a list, the file's group is
/// root's.
bool isPrivate(int file, const struct stat& info, const std::string& path,
               const std::string& credentials);

/// A file's contents. nullopt: it cannot be read; errno says why.
std::optional<std::string> textOfFile(const std::string& path);
/// Replaces a file atomically: after a crash or a power cut it has the old or the new contents, and
/// after this function has succeeded, the new ones. Waits for the disk. `mode` is applied whatever
/// the umask. Returns what went wrong; empty: nothing.
std::string writeDurableFile(const std::string& path, std::string_view text, mode_t mode);
/// Creates a file that must not exist yet, completely or not at all, and waits for the disk.
/// Returns an errno, EEXIST when a file of this name exists; 0: done.
int newDurableFile(const std::string& path, std::string_view text, mode_t mode);
/// Writes a folder's entries to the disk, so that creations, links and removals in it are durable.
/// Returns what went wrong; empty: nothing.
std::string syncFolder(const std::string& folder);

/// A lock that one process at a time holds, by means of a lock file. Any process that can open a
/// file can lock it, so the lock file is accessible to its owner and root only. A folder cannot
/// serve as a lock, because others may open it.
class LockFile {
 public:
  /// Takes the lock, or throws std::runtime_error with a remedy; it never waits. `ifHeld`: the
  /// remedy when another process holds the lock. A file of this name that is a link, not a regular
  /// file, or another user's is refused and left as it is. A lock file created by root is given to
  /// the owner of the folder, who could replace it anyway, so that a daemon of that user can take
  /// over from a killed one of root.
  LockFile(std::string path, const std::string& ifHeld);
  /// Removes the file, if this process may.
  ~LockFile();
  /// Whether some process holds the lock of this file. False when this process may not read it.
  static bool isHeld(const std::string& path);
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  bool tryTake(const std::string& ifHeld);
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const;

  std::string path_;
  UniqueFd file_;
};

}  // namespace braid
