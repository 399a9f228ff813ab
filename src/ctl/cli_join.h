#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>
#include <string>

#include "ctl/join_verbs.h"

namespace braid {

/// What the command line says for the verbs of join_verbs.h.
struct JoinArguments {
  InviteOptions invite;
  SetupOptions setup;
  JoinOptions join;
  std::string hidden;  ///< the place in the command line where an invitation stood
};

/// Adds invite, join and setup. All must outlive `app`.
void addJoinVerbs(CLI::App& app, JoinArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace braid
