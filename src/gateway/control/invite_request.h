#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace braid {

/// What `braidctl invite` asks for.
struct InviteRequest {
  static constexpr Duration kShortest = 1min, kLongest = 30 * 24h;

  std::string name;                    ///< of the peer that it makes
  std::vector<std::string> addresses;  ///< HOST:PORT of this gateway; empty: as far as it knows them
  std::vector<std::string>
      networks;  ///< that the peer reaches through this gateway; empty: `device.networks`
  Duration lifetime = 24h;
};

/// What came of it.
struct InviteResult {
  std::string problem;  ///< empty: there is an invitation
  std::string line;     ///< which holds a secret
  std::string note;     ///< what is doubtful about it; empty: nothing
};

}  // namespace braid
