#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client.h"
#include "ctl/fields.h"
#include "ctl/verbs.h"
#include "ctl/views.h"
#include "gateway/trace_writer.h"

namespace braid {
namespace {

// The answer with this peer only.
nlohmann::json onlyPeer(nlohmann::json answer, const std::string& name) {
  nlohmann::json found = nlohmann::json::array();
  std::string names;
  for (const auto& peer : listOf(answer, "peers")) {
    std::string text = textOf(peer, "name");
    if (text == name) found.push_back(peer);
    names += (names.empty() ? "" : ", ") + text;
  }
  if (found.empty()) {
    throw std::runtime_error("no peer '" + printable(name) +
                             "'; there are: " + (names.empty() ? "none" : names));
  }
  answer["peers"] = std::move(found);
  return answer;
}

}  // namespace

void recovery(const std::string& peer, const std::string& socket, bool json, std::ostream& out) {
  nlohmann::json answer = ask(findSocket(socket), "recovery");
  if (!peer.empty()) answer = onlyPeer(std::move(answer), peer);
  out << (json ? prettyJson(answer) : recoveryText(answer));
}

void traceOn(const std::string& file, const std::string& socket, bool json, std::ostream& out) {
  std::string path = findSocket(socket);
  nlohmann::json answer = ask(path, "trace-on", openTraceFile(file).get());
  answer["file"] = file;
  out << (json ? prettyJson(answer) : "the recovery trace goes to " + file + " until 'braidctl trace off'\n");
}

void traceOff(const std::string& socket, bool json, std::ostream& out) {
  nlohmann::json answer = ask(findSocket(socket), "trace-off");
  out << (json ? prettyJson(answer) : "trace off: done\n");
}

}  // namespace braid
