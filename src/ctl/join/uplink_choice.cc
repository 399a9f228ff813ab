#include "ctl/join/uplink_choice.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "ctl/join/site.h"
#include "gateway/config/config_values.h"
#include "gateway/config/units.h"
#include "gateway/join/join_messages.h"

namespace braid {
namespace {

// "wwan0=lte": both parts. An interface may have a '=' in its name.
struct Parts {
  std::string interface, more;
};
Parts partsOf(const std::string& word, const NetworkTable& table) {
  const size_t equals = table.find(word) ? std::string::npos : word.rfind('=');
  if (equals == std::string::npos) return {word, ""};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

std::string nameProblem(const std::string& name, const std::string& interface,
                        const std::vector<PlannedUplink>& others) {
  if (name != interface && !isJoinName(name))
    return "'" + name +
           "' is no name of an uplink; take 1 to 32 letters, digits, dots, dashes or "
           "underscores";
  for (const PlannedUplink& other : others)
    if (other.name == name) return "two uplinks cannot both be called " + name + "; name one anew";
  return "";
}

std::string capProblem(const std::string& cap) {
  const std::optional<uint64_t> bytes = parseByteCount(cap);
  if (bytes && *bytes >= kSmallestCap && *bytes <= kLargestCap) return "";
  return "'" + cap + "' is no cap; write bytes with their unit, 10MB to 1000000GB, such as 50GB";
}

// Asks until the answer is good; without an answer `usual`.
template <typename Problem>
std::string askUntil(UserTerminal& terminal, const std::string& question, const std::string& usual,
                     Problem&& problemOf) {
  for (std::string problem;;) {
    std::optional<std::string> answer =
        terminal.ask((problem.empty() ? "" : problem + "\n") + question + " [" + usual + "]: ");
    if (!answer || answer->empty()) return usual;
    problem = problemOf(*answer);
    if (problem.empty()) return *answer;
  }
}

std::vector<PlannedUplink> namedUplinks(const std::vector<std::string>& words,
                                        const NetworkTable& table) {
  std::vector<PlannedUplink> out;
  for (const std::string& word : words) {
    const Parts parts = partsOf(word, table);
    if (!table.find(parts.interface))
      throw std::runtime_error("there is no interface " + parts.interface +
                               "; 'ip link' lists them");
    PlannedUplink uplink{parts.interface};
    uplink.name = parts.more.empty() ? parts.interface : parts.more;
    if (std::string problem = nameProblem(uplink.name, uplink.interface, out); !problem.empty())
      throw std::runtime_error("--uplink " + word + ": " + problem);
    out.push_back(std::move(uplink));
  }
  return out;
}

void meter(const std::vector<std::string>& words, const NetworkTable& table,
           std::vector<PlannedUplink>& uplinks) {
  if (words == std::vector<std::string>{"none"}) return;
  for (const std::string& word : words) {
    const Parts parts = partsOf(word, table);
    auto found = std::ranges::find_if(uplinks, [&](const PlannedUplink& uplink) {
      return uplink.interface == parts.interface || uplink.name == parts.interface;
    });
    if (found == uplinks.end())
      throw std::runtime_error("--metered " + word + ": " + parts.interface +
                               " is none of the uplinks, " + describe(uplinks) +
                               "; name one of these, or none");
    if (std::string problem = parts.more.empty() ? "" : capProblem(parts.more); !problem.empty())
      throw std::runtime_error("--metered " + word + ": " + problem);
    found->metered = true;
    found->cap = parts.more;
  }
}

void askMeter(PlannedUplink& uplink, UserTerminal& terminal) {
  uplink.metered = terminal.askYes("Is " + uplink.name +
                                       " paid for by volume? Then it carries only what the others "
                                       "cannot.",
                                   uplink.metered);
  if (!uplink.metered) return;
  const std::string cap =
      askUntil(terminal, "Bytes that " + uplink.name + " may carry in a month, such as 50GB",
               "no cap", [](const std::string& text) { return capProblem(text); });
  uplink.cap = cap == "no cap" ? "" : cap;
}

}  // namespace

bool isModem(const Link& link, const std::string& classes) {
  if (link.kind == "wwan" || link.kind == "rmnet" || link.name.starts_with("wwan")) return true;
  std::ifstream file(classes + "/" + link.name + "/uevent");
  for (std::string line; std::getline(file, line);)
    if (line == "DEVTYPE=wwan") return true;
  return false;
}

std::vector<PlannedUplink> chooseUplinks(const UplinkWords& words, bool yes,
                                         const NetworkTable& table, const std::string& device,
                                         UserTerminal& terminal) {
  const bool asks = !yes && terminal.isThere();
  std::vector<PlannedUplink> uplinks =
      namedUplinks(words.uplinks.empty() ? findUplinks(table, device) : words.uplinks, table);
  if (uplinks.empty())
    throw std::runtime_error(
        "no interface that is up has a default route; connect one, or name those to use with "
        "--uplink");
  if (words.uplinks.empty() && asks) {
    std::vector<PlannedUplink> named;
    for (PlannedUplink& uplink : uplinks) {
      uplink.name = askUntil(
          terminal, "Name of the uplink " + uplink.interface, uplink.interface,
          [&](const std::string& name) { return nameProblem(name, uplink.interface, named); });
      named.push_back(std::move(uplink));
    }
    uplinks = std::move(named);
  }
  if (!words.metered.empty()) {
    meter(words.metered, table, uplinks);
    return uplinks;
  }
  for (PlannedUplink& uplink : uplinks) {
    if (auto link = table.find(uplink.interface)) uplink.metered = isModem(*link);
    if (asks) askMeter(uplink, terminal);
  }
  return uplinks;
}

std::string describe(const std::vector<PlannedUplink>& uplinks) {
  std::string text;
  for (const PlannedUplink& uplink : uplinks) {
    std::string more = uplink.name == uplink.interface ? "" : uplink.interface;
    if (uplink.metered)
      more += (more.empty() ? "metered" : "; metered") +
              (uplink.cap.empty() ? "" : ", " + uplink.cap + " a month");
    text += (text.empty() ? "" : ", ") + uplink.name + (more.empty() ? "" : " (" + more + ")");
  }
  return text;
}

std::vector<std::string> interfacesOf(const std::vector<PlannedUplink>& uplinks) {
  std::vector<std::string> out;
  for (const PlannedUplink& uplink : uplinks) out.push_back(uplink.interface);
  return out;
}

}  // namespace braid
