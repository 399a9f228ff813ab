#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "ctl/client/service.h"
#include "ctl/doctor/doctor.h"

namespace braid {

namespace {

// The daemon's program: the one that was installed together with this one.
std::string daemonProgram() {
  std::error_code error;
  std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "braidd" : (own.parent_path() / "braidd").string();
}

void judgeLog(const nlohmann::json& warnings, DoctorReport& report) {
  for (const nlohmann::json& line : warnings) {
    if (!line.get_ref<const std::string&>().starts_with("cannot send to")) continue;
    report.wrong({"way", line, "the kernel refuses what goes to the peer",
                  "no route: see to the uplink's default route; not permitted: a firewall rule at "
                  "'output' (nft list "
                  "ruleset)"});
    return;
  }
}

}  // namespace

void tryWays(const Patient& patient, DoctorReport& report) {
  if (patient.daemon) return;
  std::string said;
  int status =
      runProgram({daemonProgram(), "--try-paths", "--config", patient.file}, &said, nullptr, true);
  nlohmann::json told = nlohmann::json::parse(said, nullptr, false);
  if (status != 0 || told.is_discarded()) {
    report.unknown("way", "the ways to the peers could not be tried: " +
                              (said.empty() ? "braidd ended with status " + std::to_string(status)
                                            : printable(said.substr(0, said.find('\n')))));
    return;
  }
  for (const nlohmann::json& name : listOf(told, "left_out")) {
    report.unknown("way", name.get<std::string>() +
                              ": its router is set by the daemon only; start it and ask again");
  }
  const nlohmann::json& paths = fieldOf(told, "status");
  if (paths.is_null()) return;
  judgePortals(paths, report);
  judgePeers(patient, paths, fieldOf(told, "history"), report);
  judgeLog(listOf(told, "warnings"), report);
}

}  // namespace braid
