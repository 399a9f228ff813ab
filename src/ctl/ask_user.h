#pragma once

#include <iosfwd>
#include <optional>
#include <string>

namespace braid {

/// Asks at the terminal of this process, whatever its standard input is.
class UserTerminal {
 public:
  UserTerminal();
  ~UserTerminal();
  UserTerminal(const UserTerminal&) = delete;
  UserTerminal& operator=(const UserTerminal&) = delete;

  /// There is one.
  bool isThere() const { return fd_ >= 0; }
  /// The line that is typed, without its line end; nullopt: none. `hidden`: what is typed is not shown.
  std::optional<std::string> ask(const std::string& question, bool hidden = false);
  /// Yes or no; `usual` for an empty line.
  bool askYes(const std::string& question, bool usual);

 private:
  int fd_;
};

/// Overwrites the arguments of the process that are invitations, so that ps does not show them any longer, and gives what the
/// first one was. To be called before anything else.
std::string hideInvitations(int argc, char** argv);

}  // namespace braid
