#include <nlohmann/json.hpp>
#include <ostream>

#include "ctl/client.h"
#include "ctl/fields.h"
#include "ctl/verbs.h"
#include "ctl/views.h"

namespace braid {

void query(const std::string& cmd, const std::string& socket, bool json, std::ostream& out) {
  nlohmann::json answer = ask(findSocket(socket), cmd);
  if (json) {
    out << answer.dump(2) << '\n';
  } else if (cmd == "status") {
    out << statusText(answer);
  } else if (cmd == "paths") {
    out << pathsText(answer);
  } else if (cmd == "flows") {
    out << flowsText(answer);
  } else if (cmd == "peers") {
    out << peersText(answer);
  } else {
    out << cmd << ": done\n";
  }
}

void version(const std::string& socket, bool json, std::ostream& out) {
  nlohmann::json versions{{"braidctl", BRAID_VERSION}};
  if (!socket.empty()) versions["braidd"] = textOf(ask(findSocket(socket), "version"), "version");
  if (json) {
    out << versions.dump(2) << '\n';
    return;
  }
  for (const auto& [program, its] : versions.items()) out << program << ' ' << its.get<std::string>() << '\n';
}

}  // namespace braid
