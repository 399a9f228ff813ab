#pragma once

// Changes to a firewall that can be taken back later, by another process.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace braid {

/// A change: a program that is run, lines in a file of a firewall program, or a file of our own.
struct FirewallStep {
  std::vector<std::string> run{};   ///< the program and its arguments
  std::vector<std::string> undo{};  ///< takes it back
  /// Removes the rules with this comment from a chain (`undoChain`, as nft(8) names it: family,
  /// table, chain) instead.
  std::string undoComment{};
  std::vector<std::string> undoChain{};

  std::string file{};    ///< instead of a program
  std::string text{};    ///< whole lines
  std::string before{};  ///< the lines stand before the first line that begins so; empty: the file
                         ///< has nothing else, and is removed in the end
  bool isProgram = false;  ///< the file is a program: mode 0755

  /// Run when all changes are made, and again when all are taken back.
  std::vector<std::string> finish{};

  bool operator==(const FirewallStep&) const = default;
};

/// A command as one types it into a shell.
std::string shellText(const std::vector<std::string>& words);
/// What a step does, in lines for a person.
std::string toText(const FirewallStep& step);

/// Runs a program and returns what it wrote to its standard output. Throws std::runtime_error with
/// everything that it wrote when it fails.
std::string runOrThrow(const std::vector<std::string>& words);
/// The same, but returns `otherwise` when it fails.
std::string runOr(const std::vector<std::string>& words, const std::string& otherwise);

/// Writes a record down.
using KeepRecord = std::function<void(const nlohmann::json&)>;
/// Makes the changes. `name`: marks the lines in files. What takes a change back is added to
/// `record`, which is an array, and handed to `keep` before the change is made. When one fails,
/// std::runtime_error is thrown; those before it stay, and are in the record.
void makeChanges(const std::vector<FirewallStep>& steps, const std::string& name,
                 nlohmann::json& record, const KeepRecord& keep);
/// Takes back what the record says, and leaves in it what could not be taken back. Returns why, as
/// lines. What is gone already counts as taken back, also when the program is not installed any
/// more.
std::vector<std::string> takeChangesBack(nlohmann::json& record);

}  // namespace braid
