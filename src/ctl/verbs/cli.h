#pragma once

#include <iosfwd>
#include <string>

namespace braid {

/// The whole program: reads the command line, runs the verb, returns the exit code. `invitation`:
/// an invitation that stood in the command line and was overwritten there (hideInvitations()).
int runBraidctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                const std::string& invitation = {});

}  // namespace braid
