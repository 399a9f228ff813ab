#include "ctl/firewall/firewall_steps.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ctl/client/service.h"
#include "host/linux/files.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0644, kProgramMode = 0755;

// Lines around those of a gateway; its name, "braid NAME", stands behind them.
constexpr std::string_view kBegin = "# begin of ", kEnd = "# end of ";

std::string begin(const std::string& name) {
  return std::string(kBegin) + name + "\n";
}
std::string end(const std::string& name) {
  return std::string(kEnd) + name + "\n";
}

std::string failureOf(const std::vector<std::string>& words, int status,
                      const std::string& output) {
  if (status == kProgramNotFound) return "'" + words[0] + "' cannot be run: is it installed?";
  if (status == kProgramNotStarted)
    return "'" + words[0] + "' cannot be started: is it executable?";
  if (status > kEndedBySignal)
    return "'" + shellText(words) + "' was ended by signal " +
           std::to_string(status - kEndedBySignal) + ": try again";
  return "'" + shellText(words) +
         "' fails: " + output.substr(0, output.find_last_not_of(" \n") + 1);
}

// What programs say of a rule, chain, table, zone or policy that is not there: ufw, iptables, nft
// and firewall-cmd.
constexpr const char* kGone[] = {
    "non-existent rule",         "matching rule exist", "No chain/target/match", "does not exist",
    "No such file or directory", "NOT_ENABLED",         "INVALID_ZONE",          "INVALID_POLICY"};

// Runs a program that takes something back, and returns what it wrote. nullopt: that is gone
// already. The messages are read, so they must not be translated.
std::optional<std::string> undoWith(const std::vector<std::string>& words) {
  std::vector<std::string> plain{"env", "LC_ALL=C"};
  plain.insert(plain.end(), words.begin(), words.end());
  std::string output;
  int status = runProgram(plain, &output);
  if (status == 0) return output;
  bool isGone = std::ranges::any_of(
      kGone, [&](const char* text) { return output.find(text) != std::string::npos; });
  if (isGone || status == kProgramNotFound) return std::nullopt;
  throw std::runtime_error(failureOf(words, status, output));
}

mode_t modeOf(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777u : kFileMode;
}

void write(const std::string& path, const std::string& text, mode_t mode) {
  std::string problem = writeDurableFile(path, text, mode);
  if (!problem.empty()) throw std::runtime_error(problem);
}

// Where the first line begins that begins so, and is none of another gateway's.
size_t placeBefore(const std::string& text, const std::string& start) {
  bool isOurs = false;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.starts_with(kBegin)) isOurs = true;
    if (!isOurs && line.starts_with(start)) return at;
    if (line.starts_with(kEnd)) isOurs = false;
  }
  return std::string::npos;
}

void insertLines(const FirewallStep& step, const std::string& name) {
  std::optional<std::string> text = textOfFile(step.file);
  if (!text) throw std::runtime_error(step.file + ": cannot be read: " + std::strerror(errno));
  size_t at = placeBefore(*text, step.before);
  if (at == std::string::npos)
    throw std::runtime_error(step.file + " has no line that begins with '" + step.before +
                             "': add the rules by hand ('braidctl firewall show')");
  write(step.file, text->insert(at, begin(name) + step.text + end(name)), modeOf(step.file));
}

// False: the lines are not there.
bool removeLines(const std::string& file, const std::string& name) {
  std::optional<std::string> text = textOfFile(file);
  if (!text && errno != ENOENT)
    throw std::runtime_error(file + ": cannot be read: " + std::strerror(errno));
  if (!text) return false;
  bool found = false;
  for (size_t from; (from = text->find(begin(name))) != std::string::npos;) {
    size_t to = text->find(end(name), from);
    if (to == std::string::npos) break;
    text->erase(from, to + end(name).size() - from);
    found = true;
  }
  if (found) write(file, *text, modeOf(file));
  return found;
}

void makeFile(const FirewallStep& step) {
  std::error_code error;
  fs::create_directories(fs::path(step.file).parent_path(), error);
  write(step.file, step.text, step.isProgram ? kProgramMode : kFileMode);
}

// The handles of a chain's rules with this comment, which nft(8) prints behind each rule.
std::vector<std::string> handlesOf(const std::string& listed, const std::string& comment) {
  std::vector<std::string> out;
  std::istringstream lines(listed);
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.rfind("# handle ");
    if (at != std::string::npos && line.find("comment \"" + comment + "\"") != std::string::npos)
      out.push_back(line.substr(at + 9));
  }
  return out;
}

void removeRules(const std::vector<std::string>& chain, const std::string& comment) {
  std::vector<std::string> words{"nft", "-a", "list", "chain"};
  words.insert(words.end(), chain.begin(), chain.end());
  for (const std::string& handle : handlesOf(undoWith(words).value_or(""), comment)) {
    std::vector<std::string> remove{"nft", "delete", "rule"};
    remove.insert(remove.end(), chain.begin(), chain.end());
    remove.insert(remove.end(), {"handle", handle});
    undoWith(remove);
  }
}

std::vector<std::string> wordsOf(const nlohmann::json& entry, const char* key) {
  std::vector<std::string> out;
  auto list = entry.find(key);
  if (list == entry.end() || !list->is_array()) return out;
  for (const nlohmann::json& word : *list)
    if (word.is_string()) out.push_back(word.get<std::string>());
  return out;
}

std::string wordOf(const nlohmann::json& entry, const char* key) {
  auto word = entry.find(key);
  return word != entry.end() && word->is_string() ? word->get<std::string>() : std::string();
}

void takeBack(const nlohmann::json& entry) {
  std::string file = wordOf(entry, "file"), lines = wordOf(entry, "lines");
  if (!file.empty() && !lines.empty()) {
    removeLines(file, lines);
  } else if (!file.empty()) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      throw std::runtime_error(file + ": cannot be removed: " + std::strerror(errno));
    std::error_code ignored;
    fs::remove(fs::path(file).parent_path(), ignored);  // only when it is empty
  } else if (std::string comment = wordOf(entry, "comment"); !comment.empty()) {
    removeRules(wordsOf(entry, "chain"), comment);
  } else if (std::vector<std::string> words = wordsOf(entry, "undo"); !words.empty()) {
    undoWith(words);
  }
}

nlohmann::json undoOf(const FirewallStep& step, const std::string& name) {
  nlohmann::json entry = nlohmann::json::object();
  if (!step.file.empty()) {
    entry["file"] = step.file;
    if (!step.before.empty()) entry["lines"] = name;
  } else if (!step.undoComment.empty()) {
    entry["comment"] = step.undoComment;
    entry["chain"] = step.undoChain;
  } else {
    entry["undo"] = step.undo;
  }
  return entry;
}

// Adds to the record what is not there yet, and has it written down.
void note(const nlohmann::json& entry, nlohmann::json& record, const KeepRecord& keep) {
  if (std::ranges::find(record, entry) != record.end()) return;
  record.push_back(entry);
  try {
    keep(record);
  } catch (const std::runtime_error&) {
    record.erase(record.size() - 1);
    throw;
  }
}

void makeChange(const FirewallStep& step, const std::string& name, nlohmann::json& record,
                const KeepRecord& keep) {
  size_t before = record.size();
  if (!step.file.empty() || !step.run.empty()) note(undoOf(step, name), record, keep);
  if (!step.file.empty()) {
    if (step.before.empty()) {
      makeFile(step);
    } else {
      removeLines(step.file, name);
      insertLines(step, name);
    }
    return;
  }
  if (step.run.empty()) return;
  std::string output;
  int status = runProgram(step.run, &output);
  if (status == 0) return;
  // A program that refuses has changed nothing; what has the name that it was to make is another's.
  // A program that a signal ended may have changed something.
  if (status <= kEndedBySignal && record.size() > before) record.erase(before);
  throw std::runtime_error(failureOf(step.run, status, output));
}

// The commands that end the changes, each once.
std::vector<std::vector<std::string>> finishesOf(const std::vector<FirewallStep>& steps) {
  std::vector<std::vector<std::string>> out;
  for (const FirewallStep& step : steps) {
    if (!step.finish.empty() && std::ranges::find(out, step.finish) == out.end())
      out.push_back(step.finish);
  }
  return out;
}

bool isPlain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("-_./:,=+@%", c) != nullptr;
}

}  // namespace

std::string shellText(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    bool plain = !word.empty() && std::ranges::all_of(word, isPlain);
    std::string quoted = word;
    for (size_t at = 0; !plain && (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    out += (out.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return out;
}

std::string toText(const FirewallStep& step) {
  std::string out;
  if (!step.file.empty()) {
    out = "in " + step.file +
          (step.before.empty() ? ":" : ", before the first line '" + step.before + "...':") + "\n";
    std::istringstream lines(step.text);
    for (std::string line; std::getline(lines, line);) out += "    " + line + "\n";
  } else if (!step.run.empty()) {
    out = shellText(step.run) + "\n";
  }
  return out;
}

std::string runOrThrow(const std::vector<std::string>& words) {
  std::string output;
  int status = runProgram(words, &output);
  if (status != 0) throw std::runtime_error(failureOf(words, status, output));
  return output;
}

std::string runOr(const std::vector<std::string>& words, const std::string& otherwise) {
  std::string output;
  return runProgram(words, &output) == 0 ? output : otherwise;
}

void makeChanges(const std::vector<FirewallStep>& steps, const std::string& name,
                 nlohmann::json& record, const KeepRecord& keep) {
  std::vector<std::vector<std::string>> finishes = finishesOf(steps);
  for (const std::vector<std::string>& finish : finishes) note({{"finish", finish}}, record, keep);
  for (const FirewallStep& step : steps) makeChange(step, name, record, keep);
  for (const std::vector<std::string>& finish : finishes) runOrThrow(finish);
}

std::vector<std::string> takeChangesBack(nlohmann::json& record) {
  std::vector<std::string> problems;
  if (!record.is_array()) return problems;
  nlohmann::json left = nlohmann::json::array(), finishes = nlohmann::json::array();
  auto isDone = [&](auto&& doIt) {
    try {
      doIt();
      return true;
    } catch (const std::runtime_error& e) {
      problems.emplace_back(e.what());
      return false;
    }
  };
  for (auto entry = record.rbegin(); entry != record.rend(); ++entry) {
    if (!wordsOf(*entry, "finish").empty()) {
      if (std::ranges::find(finishes, *entry) == finishes.end()) finishes.push_back(*entry);
    } else if (!isDone([&] { takeBack(*entry); })) {
      left.insert(left.begin(), *entry);
    }
  }
  // What is left to take back needs its end again.
  const bool isAll = left.empty();
  for (const nlohmann::json& finish : finishes) {
    bool isEnded = isDone([&] {
      std::vector<std::string> words = wordsOf(finish, "finish");
      std::string output;
      int status = runProgram(words, &output);
      if (status != 0 && status != kProgramNotFound)
        throw std::runtime_error(failureOf(words, status, output));
    });
    if (!isEnded || !isAll) left.insert(left.begin(), finish);
  }
  record = std::move(left);
  return problems;
}

}  // namespace braid
