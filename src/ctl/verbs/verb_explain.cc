#include <ctime>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ctl/client/client.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/explain.h"
#include "ctl/views/fields.h"

namespace braid {

void explainPast(double sinceSeconds, const std::string& socket, bool json, std::ostream& out) {
  std::string path = findSocket(socket);
  PastAnswers past{.index = ask(path, "history"), .paths = {}, .peers = {}};
  for (const auto& p : listOf(past.index, "paths"))
    past.paths.push_back(
        askWith(path, "history", {{"peer", fieldOf(p, "peer")}, {"path", fieldOf(p, "path")}}));
  for (const auto& p : listOf(past.index, "peers"))
    past.peers.push_back(askWith(path, "history", {{"peer", p}}));
  auto now = static_cast<double>(std::time(nullptr));
  nlohmann::json explained = explain(past, now - sinceSeconds, now);
  out << (json ? prettyJson(explained) : explainText(explained));
}

}  // namespace braid
