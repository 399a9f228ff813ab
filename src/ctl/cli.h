#pragma once

#include <iosfwd>
#include <string>

namespace braid {

/// Exit codes of braidctl.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  ///< it could not be done; the reason is on the error stream
inline constexpr int kExitUsage = 2;    ///< the command line is wrong
inline constexpr int kExitUnknown = 2;  ///< doctor could not look, or not at everything

/// The whole program: reads the command line, does the verb, gives the exit code. `invitation`: one that stood in the
/// command line and was made unreadable there (hideInvitations()).
int runBraidctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                const std::string& invitation = {});

}  // namespace braid
