#include "ctl/doctor/doctor.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "ctl/client/client.h"
#include "ctl/firewall/openings.h"
#include "ctl/views/format.h"
#include "gateway/control/gateway_status.h"
#include "host/linux/files.h"
#include "host/linux/netlink_monitor.h"

namespace braid {

std::optional<std::string> Machine::text(const std::string& file) const {
  std::optional<std::string> text = textOfFile(path(file));
  if (text) text->resize(text->find_last_not_of(" \t\n") + 1);
  return text;
}

std::optional<int64_t> Machine::number(const std::string& file) const {
  std::optional<std::string> digits = text(file);
  int64_t value = 0;
  if (!digits ||
      std::from_chars(digits->data(), digits->data() + digits->size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

std::optional<uint64_t> Machine::capabilities(const std::string& process,
                                              const std::string& set) const {
  std::ifstream in(path("/proc/" + process + "/status"));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(set + ":\t")) continue;
    uint64_t value = 0;
    const char* begin = line.data() + set.size() + 2;
    if (std::from_chars(begin, line.data() + line.size(), value, 16).ec == std::errc())
      return value;
  }
  return std::nullopt;
}

bool Machine::isUserNamespace() const {
  std::istringstream map(text("/proc/self/uid_map").value_or("0 0 4294967295"));
  uint64_t inside = 0, outside = 0, count = 0;
  map >> inside >> outside >> count;
  return inside != 0 || outside != 0 || count != 4294967295;
}

nlohmann::json DoctorReport::toJson() const {
  using nlohmann::json;
  json out{{"findings", json::array()}, {"unknown", json::array()}, {"fine", json::array()}};
  for (const Finding& f : findings_)
    out["findings"].push_back(
        {{"check", f.check}, {"what", f.what}, {"why", f.why}, {"remedy", f.remedy}});
  for (const Finding& f : unknown_) out["unknown"].push_back({{"check", f.check}, {"why", f.what}});
  for (const Finding& f : fine_) out["fine"].push_back({{"check", f.check}, {"what", f.what}});
  return out;
}

std::string DoctorReport::toText() const {
  std::string text;
  for (const Finding& f : findings_) {
    text += "WRONG    " + f.check + ": " + printable(f.what) + "\n";
    text += "         " + printable(f.why.empty() ? "" : f.why + ". ") +
            "Remedy: " + printable(f.remedy) + "\n";
  }
  for (const Finding& f : unknown_) text += "UNKNOWN  " + f.check + ": " + printable(f.what) + "\n";
  for (const Finding& f : fine_) text += "fine     " + f.check + ": " + printable(f.what) + "\n";
  size_t n = findings_.size();
  return text +
         (n == 0 ? "nothing wrong was found"
                 : std::to_string(n) + (n == 1 ? " finding" : " findings")) +
         (unknown_.empty() ? "\n" : "; not everything could be looked at\n");
}

namespace {

namespace fs = std::filesystem;

LoadOptions optionsOf() {
  LoadOptions out;
  if (const char* folder = std::getenv("CREDENTIALS_DIRECTORY")) out.credentials = folder;
  return out;
}

// Reports every mistake of the file. nullopt: too many mistakes to continue. `whole`: the identity
// is valid, too.
std::optional<Config> load(const std::string& file, DoctorReport& report, bool& whole) {
  LoadOptions options = optionsOf();
  ConfigResult result = loadConfig(file, options);
  whole = std::holds_alternative<Config>(result);
  if (whole) {
    report.fine("configuration", file + " has no mistakes");
    return std::get<Config>(std::move(result));
  }
  for (const ConfigError& e : std::get<ConfigErrors>(result)) {
    std::string place =
        e.file + (e.line ? ":" + std::to_string(e.line) : "") + (e.key.empty() ? "" : ": " + e.key);
    report.wrong({"configuration", place + ": " + e.problem,
                  "the daemon does not start, nor reload", e.remedy});
  }
  options.checkIdentity = false;
  result = loadConfig(file, options);
  if (auto* config = std::get_if<Config>(&result)) return std::move(*config);
  return std::nullopt;
}

std::optional<RunningDaemon> daemonOf(const Config& config, DoctorReport& report) {
  if (!fs::exists(config.control.socket)) {
    report.fine("daemon",
                "none runs with this configuration: the ways to the peers are tried without it");
    return std::nullopt;
  }
  try {
    RunningDaemon out{
        ask(config.control.socket, "status"), ask(config.control.socket, "history"), {}};
    out.process = fieldOf(fieldOf(out.status, "gateway"), kKeyOf<&GatewayStatus::pid>).dump();
    report.fine("daemon", "process " + out.process + " answers");
    return out;
  } catch (const std::runtime_error& e) {
    std::string text = e.what();
    if (::access(config.control.socket.c_str(), R_OK | W_OK) != 0) {
      report.unknown("daemon", text);
    } else {
      report.wrong(
          {"daemon", text,
           "its control socket is there, and nobody answers: the daemon was killed, or hangs",
           "systemctl restart braid@NAME; the journal says why it ended"});
    }
  }
  return std::nullopt;
}

int statusOf(const DoctorReport& report) {
  if (!report.findings().empty()) return kExitFailure;
  return report.unknowns().empty() ? kExitOk : kExitUnknown;
}

}  // namespace

std::string configPath(const std::string& given, const std::string& socket) {
  if (!given.empty()) return configFile(given);
  try {
    return textOf(fieldOf(ask(findSocket(socket), "status"), "gateway"),
                  kKeyOf<&GatewayStatus::config>);
  } catch (const std::runtime_error&) {
    if (!socket.empty()) throw;
  }
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kConfigFolder, error))
    if (entry.path().extension() == ".yaml") found.push_back(entry.path().string());
  if (found.size() == 1) return found[0];
  throw std::runtime_error(std::string(found.empty() ? "no" : "more than one") +
                           " configuration in " + kConfigFolder + "; name one as FILE");
}

DoctorReport examine(const std::string& file) {
  DoctorReport report;
  bool whole = false;
  std::optional<Config> config = load(file, report, whole);
  if (!config) return report;
  std::optional<RunningDaemon> daemon = daemonOf(*config, report);
  NetlinkSocket rules(0);
  Patient patient{*config,          daemon ? &*daemon : nullptr,
                  Machine(),        NetlinkMonitor().table(),
                  readMainRoutes(), file,
                  readRules(rules)};
  checkHost(patient, report);
  checkSysctls(patient, report);
  checkFiles(patient, report);
  checkNetwork(patient, report);
  checkOtherTunnels(patient, report);
  checkLans(patient, report);
  checkGuard(patient, report);
  checkResolvers(patient, report);
  checkNames(patient, report);
  checkFirewall(patient, report);
  checkDaemon(patient, report);
  if (whole) tryWays(patient, report);
  checkRouters(patient, report);
  return report;
}

int doctor(const std::string& file, const std::string& socket, bool json, std::ostream& out,
           std::ostream& err) {
  try {
    DoctorReport report = examine(configPath(file, socket));
    out << (json ? prettyJson(report.toJson()) : report.toText());
    return statusOf(report);
  } catch (const std::runtime_error& e) {
    err << printableLines(e.what()) << '\n';
    return kExitUnknown;
  }
}

}  // namespace braid
