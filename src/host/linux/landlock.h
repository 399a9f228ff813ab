#pragma once

#include <string>
#include <vector>

namespace braid {

/// The files that a process may open. Names that do not exist when it is restricted are left out.
struct AllowedFiles {
  std::vector<std::string> read;   ///< files, and folders with everything below
  std::vector<std::string> write;  ///< the same, to read and to write what exists
  std::vector<std::string> make;   ///< folders in which files are read, made, replaced and removed
};

/// From now on this thread, and those that it starts, can open no other files, and execute none
/// (Landlock). Files that are open already, sockets, and stat() are not affected. Cannot be undone.
/// Needs no_new_privs. Returns why this kernel cannot do that; empty: done. Throws SystemError when
/// it can, but refuses.
std::string restrictFiles(const AllowedFiles& allowed);

}  // namespace braid
