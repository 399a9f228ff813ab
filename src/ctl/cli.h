#pragma once

#include <iosfwd>

namespace braid {

/// Exit codes of braidctl.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  ///< it could not be done; the reason is on the error stream
inline constexpr int kExitUsage = 2;    ///< the command line is wrong

/// The whole program: reads the command line, does the verb, gives the exit code.
int runBraidctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace braid
