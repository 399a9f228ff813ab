#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace braid {

/// Writes a file anew, in one step: after a crash or a power cut it is the old one or the new one, and once this has said
/// that it is written, the new one. Waits for the disk. The mode is that, whatever the umask. Gives what went wrong; empty:
/// nothing.
std::string writeDurableFile(const std::string& path, std::string_view text, mode_t mode);
/// Writes a file that must not be there yet, as a whole or not at all, and waits for the disk. Gives what went wrong as
/// errno has it, EEXIST when there is one of this name; 0: nothing.
int newDurableFile(const std::string& path, std::string_view text, mode_t mode);
/// The names in a folder are on the disk: of what was made, linked or removed there. Gives what went wrong; empty:
/// nothing.
std::string syncFolder(const std::string& folder);

}  // namespace braid
