#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace braid {

/// Exit code of a program whose command line is wrong.
inline constexpr int kExitUsage = 2;

/// The command line of a program that users run. Help and mistakes are told in words of ours, at
/// most 100 columns wide; no sentence of the library reaches the user.
class Program : public CLI::App {
 public:
  /// `version` is printed by --version; `examples`: lines of shell, shown at the end of --help.
  Program(const std::string& name, const std::string& version, const std::string& description,
          const std::vector<std::string>& examples);
  /// Reads the words into the variables of the options and calls the verb's callback, whose
  /// exceptions pass. Returns the exit code when the program is to end: 0 after --help and
  /// --version, kExitUsage after a mistake, which is told on `err` with its remedy.
  std::optional<int> read(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

 private:
  std::string examples_;
};

/// Checks of an option's value: pass them to CLI::Option::check().
CLI::Validator wholeNumber(uint64_t low, uint64_t high);
CLI::Validator oneOf(const std::vector<std::string>& words);

}  // namespace braid
