#include "ctl/firewall/firewall.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <utility>

#include "ctl/client/service.h"
#include "host/linux/files.h"
#include "host/linux/netlink_monitor.h"
#include "host/system.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

// A rule may show another chain that drops, so the filter is looked at again.
constexpr int kRounds = 3;

std::string nameOfGateway(const std::string& file) {
  return fs::path(file).stem().string();
}

FirewallTask taskOf(const std::string& file, const Config& config) {
  return {nameOfGateway(file), config.device.name, hasSystemd()};
}

std::vector<Obstacle> obstaclesNow(const Config& config, const NftFirewall& wall) {
  return obstaclesTo(openingsOf(config, NetlinkMonitor().table(), readMainRoutes()), wall);
}

FirewallState sorted(const std::vector<Obstacle>& obstacles, const NftFirewall& wall,
                     const FirewallTask& task) {
  FirewallState out;
  for (const Obstacle& obstacle : obstacles) {
    FirewallProgram program = programOf(obstacle, wall);
    auto part = std::ranges::find(out.parts, program, &FirewallState::Part::program);
    if (part == out.parts.end()) {
      out.parts.push_back({program, {}, {}});
      part = std::prev(out.parts.end());
    }
    part->obstacles.push_back(obstacle);
  }
  for (FirewallState::Part& part : out.parts)
    part.steps = stepsFor(part.program, part.obstacles, task);
  out.unread = unreadFilters();
  return out;
}

// Empty: nothing is recorded.
nlohmann::json readRecord(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error) && !error) return nlohmann::json::array();
  std::ifstream in(path);
  nlohmann::json out = in ? nlohmann::json::parse(in, nullptr, false) : nlohmann::json();
  if (out.is_array()) return out;
  throw std::runtime_error(path +
                           " is no record of 'braidctl firewall allow', or cannot be read; " +
                           "take its changes back by hand, and remove the file");
}

void writeRecord(const std::string& path, const nlohmann::json& record) {
  std::string problem = writeDurableFile(path, record.dump(1) + "\n", 0644);
  if (!problem.empty()) throw std::runtime_error(problem);
}

// Takes back what the record says; what could not be taken back stays in the file. Returns why.
std::vector<std::string> takeBackRecord(const std::string& path, nlohmann::json& record) {
  std::vector<std::string> problems = takeChangesBack(record);
  if (record.empty()) {
    ::unlink(path.c_str());
    return problems;
  }
  try {
    writeRecord(path, record);
  } catch (const std::runtime_error& e) {
    problems.emplace_back(e.what());  // the file still has more than what is left
  }
  return problems;
}

std::string linesOf(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "\n") + problem;
  return text;
}

}  // namespace

std::string remedyFor(const Obstacle& obstacle, const NftFirewall& wall, const std::string& file) {
  FirewallProgram program = programOf(obstacle, wall);
  std::string verb = "braidctl firewall allow " + file;
  if (!canOpen(program, obstacle.opening))
    return "none is needed: they are carried as packets, as " + std::string(nameOf(program)) +
           " cannot tell them from connections to this host";
  if (keepsRules(program))
    return verb + " (has " + nameOf(program) + " let them through; 'firewall show' says how)";
  std::string text;
  for (const FirewallStep& step : stepsFor(program, {obstacle}, {nameOfGateway(file), {}, false}))
    text += (text.empty() ? "" : " and ") + shellText(step.run);
  return text + " (and in the file that the firewall is made from); or " + verb + " --into-chains";
}

std::string consequenceOf(const Obstacle& obstacle) {
  switch (obstacle.opening.kind) {
    case Opening::Kind::kListen:
      return "no peer can reach this gateway";
    case Opening::Kind::kOut:
    case Opening::Kind::kAnswers:
      return "hosts there cannot use the tunnel, while the gateway itself can";
    case Opening::Kind::kIn:
      return "hosts behind peers do not reach hosts there";
    case Opening::Kind::kNat:
      return "hosts behind peers reach this gateway, and nothing beyond it";
    case Opening::Kind::kForward:
      return "nobody reaches that host by the port";
    case Opening::Kind::kStreams:
      break;
  }
  return "they are carried as packets, without what streams give";
}

bool isHarmless(const Obstacle& obstacle, const NftFirewall& wall) {
  return obstacle.opening.kind == Opening::Kind::kStreams &&
         !canOpen(programOf(obstacle, wall), obstacle.opening);
}

std::vector<std::string> unreadFilters(const std::string& root) {
  std::vector<std::string> out;
  for (const char* version : {"", "6"}) {
    std::ifstream in(root + "/proc/net/ip" + version + "_tables_names");
    for (std::string table; std::getline(in, table);) {
      if (table == "filter")
        out.push_back("rules of ip" + std::string(version) + "tables-legacy are not read: ip" +
                      version + "tables-legacy -S shows them (INPUT and FORWARD)");
    }
  }
  return out;
}

FirewallState lookAtFirewall(const std::string& file, const Config& config) {
  NftFirewall wall;
  return sorted(obstaclesNow(config, wall), wall, taskOf(file, config));
}

std::vector<std::string> firewallWarnings(const std::string& file, const Config& config) {
  std::vector<std::string> out;
  try {
    NftFirewall wall;
    for (const Obstacle& obstacle : obstaclesNow(config, wall)) {
      if (isHarmless(obstacle, wall)) continue;
      out.push_back(obstacle.opening.toString() + ": dropped by " + obstacle.drop.toString() +
                    "; " + consequenceOf(obstacle) +
                    ". Remedy: " + remedyFor(obstacle, wall, file));
    }
  } catch (const SystemError&) {
    // Without the right to read the filter, nothing is said about it.
  }
  return out;
}

FirewallChange allowInFirewall(const FirewallWish& wish, const Config& config) {
  Interruption interruption;
  std::string path = firewallRecord(wish.file);
  FirewallTask task = taskOf(wish.file, config);
  FirewallChange change;
  nlohmann::json record = readRecord(path);
  change.problems = takeBackRecord(path, record);
  auto keep = [&](const nlohmann::json& now) { writeRecord(path, now); };
  try {
    for (int round = 0;; ++round) {
      change.left = lookAtFirewall(wish.file, config);
      bool isNew = false;
      for (const FirewallState::Part& part : change.left.parts) {
        if (round == kRounds || (!keepsRules(part.program) && !wish.intoChains)) continue;
        std::vector<FirewallStep> fresh;
        for (const FirewallStep& step : part.steps) {
          if (std::ranges::find(change.done, step) == change.done.end()) fresh.push_back(step);
        }
        if (fresh.empty()) continue;
        makeChanges(fresh, "braid " + task.name, record, keep);
        Interruption::check();
        change.done.insert(change.done.end(), fresh.begin(), fresh.end());
        isNew = true;
      }
      if (!isNew) break;
    }
  } catch (const std::runtime_error& e) {
    std::string text = e.what();
    std::string problems = linesOf(takeBackRecord(path, record));
    throw std::runtime_error(problems.empty() ? text : text + "\n" + problems);
  }
  return change;
}

bool removeFromFirewall(const std::string& file) {
  Interruption interruption;
  std::string path = firewallRecord(file);
  if (std::error_code error; !fs::exists(path, error)) return false;
  nlohmann::json record = readRecord(path);
  std::string problems = linesOf(takeBackRecord(path, record));
  if (!problems.empty())
    throw std::runtime_error(problems + "\nwhat is left stands in " + path +
                             "; call 'braidctl firewall remove' again when this is mended");
  return true;
}

std::string firewallRecord(const std::string& file) {
  return fs::path(file).replace_extension(".firewall").string();
}

}  // namespace braid
