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
    out << prettyJson(answer);
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
  if (!json) out << "braidctl " << BRAID_VERSION << '\n';  // whatever the daemon says
  nlohmann::json versions{{"braidctl", BRAID_VERSION}};
  if (!socket.empty()) versions["braidd"] = textOf(ask(findSocket(socket), "version"), "version");
  if (json) {
    out << prettyJson(versions);
  } else if (!socket.empty()) {
    out << "braidd " << versions["braidd"].get<std::string>() << '\n';
  }
}

}  // namespace braid
