#include "ctl/client/daemon_log.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "ctl/client/service.h"
#include "ctl/views/format.h"
#include "gateway/config/units.h"

namespace braid {
namespace {

constexpr int kError = 3, kWarning = 4, kInformation = 6;  // syslog(3)

std::string_view takeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// A line of a daemon that does not write into a journal: "2026-11-30 02:16:15.123 error: TEXT".
std::optional<LogLine> daemonLine(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 6> kLevels{{{" critical: ", 2},
                                                                     {" error: ", kError},
                                                                     {" warning: ", kWarning},
                                                                     {" info: ", kInformation},
                                                                     {" debug: ", 7},
                                                                     {" trace: ", 7}}};
  constexpr size_t kTime = std::string_view("2026-11-30 02:16:15.123").size();
  for (const auto& [word, priority] : kLevels)
    if (text.find(word) == kTime)
      return LogLine{priority, printable(text.substr(kTime + word.size()))};
  return std::nullopt;
}

}  // namespace

std::vector<LogLine> parseJournal(std::string_view output) {
  std::vector<LogLine> lines;
  while (!output.empty()) {
    const auto entry = nlohmann::json::parse(takeLine(output), nullptr, false);
    const std::string text = wordOf(entry, "MESSAGE");
    const auto priority = parseNumber(wordOf(entry, "PRIORITY"));
    if (!text.empty())
      lines.push_back({priority && *priority < 8 ? static_cast<int>(*priority) : kInformation,
                       printable(text)});
  }
  return lines;
}

// "Mon Nov 30 02:16:15 2026 daemon.err braid: TEXT". procd calls the daemon by its first command,
// which is a shell.
std::vector<LogLine> parseLogread(std::string_view output) {
  std::vector<LogLine> lines;
  while (!output.empty()) {
    std::string_view line = takeLine(output);
    const size_t end = line.find(": ");
    if (end == std::string_view::npos) continue;
    std::string_view writer = line.substr(0, end), text = line.substr(end + 2);
    writer = writer.substr(writer.rfind(' ') + 1);
    writer = writer.substr(0, writer.find('['));
    if (auto told = daemonLine(text); told && (writer == "sh" || writer == "braidd"))
      lines.push_back(*told);
    else if (writer == "braid")
      lines.push_back({line.find(" daemon.err ") < end ? kError : kInformation, printable(text)});
  }
  return lines;
}

std::string decisiveLine(const std::vector<LogLine>& lines) {
  const LogLine* found = nullptr;
  for (const LogLine& line : lines) {
    const bool isError = line.priority <= kError;
    if (isError || (line.priority == kWarning && (!found || found->priority == kWarning)))
      found = &line;
  }
  return found ? found->text : "";
}

std::vector<LogLine> readDaemonLog(const std::string& name, std::time_t since) {
  std::string output;
  if (!hasSystemd()) {
    if (runProgram({"logread"}, &output) != 0) return {};
    return parseLogread(output);
  }
  auto linesOf = [&](std::vector<std::string> which) {
    which.insert(which.begin(), {"journalctl", "--quiet", "--no-pager", "--output=json",
                                 "--lines=200", "--since=@" + std::to_string(since)});
    output.clear();
    return runProgram(which, &output) == 0 ? parseJournal(output) : std::vector<LogLine>();
  };
  const std::string unit = "braid@" + name;
  std::vector<LogLine> lines =
      linesOf({"_SYSTEMD_UNIT=" + unit + ".service", "SYSLOG_IDENTIFIER=braidd"});
  if (!lines.empty()) return lines;
  // The service manager's first error is the reason, those behind it are what came of it.
  lines = linesOf({"--unit=" + unit});
  auto error = std::ranges::find_if(lines, [](const LogLine& l) { return l.priority <= kError; });
  if (error != lines.end()) lines.erase(error + 1, lines.end());
  return lines;
}

std::string logCommand(const std::string& name) {
  if (hasSystemd()) return "journalctl -u braid@" + name;
  return hasInitScript() ? "logread" : "";
}

}  // namespace braid
