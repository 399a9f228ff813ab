#pragma once

#include <string>

#include "host/unique_fd.h"

namespace braid {

/// A lock that one process at a time holds, by a file of its own. Who may open a file may lock it, so this
/// one is for its owner and root alone: a folder, which others may open as well, is no lock.
class LockFile {
 public:
  /// Takes the lock, or throws std::runtime_error with a remedy: it waits for nobody. `ifHeld`: what is to be
  /// done when another process has it. A file of this name that is a link, no regular file, or another user's
  /// is refused and stays as it is. What root makes belongs to the owner of the folder, who could replace it
  /// anyway: a daemon of that user can take over from a killed one of root.
  LockFile(std::string path, const std::string& ifHeld);
  /// Removes the file, where this process may.
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  bool tryTake(const std::string& ifHeld);
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const;

  std::string path_;
  UniqueFd file_;
};

}  // namespace braid
