#pragma once

#include <iosfwd>
#include <string>

#include "ctl/doctor_report.h"

namespace braid {

/// Looks at a gateway and its host for what is wrong. `file`: a configuration, its name in /etc/braid, or empty for
/// that of the daemon that runs, or the only one there. Gives the exit status: kExitOk, kExitFailure when something is
/// wrong, kExitUnknown when nothing is known to be, but not everything could be looked at.
int doctor(const std::string& file, const std::string& socket, bool json, std::ostream& out,
           std::ostream& err);
/// The same for a file, without words. Throws std::runtime_error where nothing can be looked at.
DoctorReport examine(const std::string& file);

}  // namespace braid
