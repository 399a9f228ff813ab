#pragma once

#include <iosfwd>
#include <string>

#include "ctl/doctor/doctor_checks.h"

namespace braid {

/// Checks a gateway and its host for problems. `file`: the path of a configuration, or a name in
/// /etc/braid. Empty: the running daemon's configuration, or the only one in /etc/braid. Returns
/// the exit status: kExitOk, kExitFailure when something is wrong, or kExitUnknown when nothing was
/// found to be wrong but not everything could be checked.
int doctor(const std::string& file, const std::string& socket, bool json, std::ostream& out,
           std::ostream& err);
/// Makes the same checks for a file and prints nothing. Throws std::runtime_error when nothing can
/// be checked.
DoctorReport examine(const std::string& file);

}  // namespace braid
