// braidd: one gateway of a pair. docs/guide.md describes it for users.

#include <signal.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>

#include "gateway/command_line.h"
#include "gateway/daemon.h"
#include "gateway/log/log.h"
#include "gateway/trial.h"
#include "host/linux/files.h"
#include "host/linux/process.h"
#include "host/system.h"

namespace {

// Runs before the static initializers of libraries, which allocate memory.
[[gnu::constructor(101)]] void prepareHeap() {
  braid::returnLargeBlocks();
  braid::holdMemoryReserve();
}

braid::LoadOptions loadOptions() {
  braid::LoadOptions out;
  if (const char* folder = std::getenv("CREDENTIALS_DIRECTORY")) out.credentials = folder;
  return out;
}

// Writes a line to stderr: an error, or a warning. The journal gets its priority.
void tell(spdlog::level::level_enum level, const std::string& line) {
  if (braid::detectLogStyle() == braid::LogStyle::kJournal)
    std::cerr << braid::journalPrefix(level);
  std::cerr << line << "\n";
}

// Returns the valid configuration, or prints every mistake to stderr.
std::optional<braid::Config> load(const std::string& file, const braid::LoadOptions& options) {
  braid::ConfigResult result = braid::loadConfig(file, options);
  if (auto* errors = std::get_if<braid::ConfigErrors>(&result)) {
    for (const braid::ConfigError& e : *errors) tell(spdlog::level::err, e.toString());
    return std::nullopt;
  }
  return std::get<braid::Config>(std::move(result));
}

int serve(int argc, char** argv) {
  braid::Program app{"braidd",
                     "braidd " BRAID_VERSION,
                     "Carries packets over all uplinks at once to the gateway at the other end.",
                     {"braidd --check /etc/braid/edge.yaml        # is the configuration good?",
                      "braidd /etc/braid/edge.yaml                # as root: goes on as 'braid'"}};
  std::string file, user;
  bool check = false, tryOut = false, coreDumps = false;
  app.add_option("-c,--config,FILE", file, "Configuration file (YAML)")
      ->type_name("FILE")
      ->required();
  app.add_flag("--check", check, "Only read and check the configuration");
  app.add_flag("--try-paths", tryOut,
               "Only connect to the peers, print what came of it as JSON, and change nothing");
  app.add_option("--user", user, "User to run as from the start; 'root': to stay root")
      ->type_name("NAME");
  app.add_flag("--core-dumps", coreDumps,
               "Let a crash leave a core dump: it holds the private key");
  if (auto ended = app.read(argc, argv, std::cout, std::cerr)) return *ended;

  try {
    // The daemon's user may not be allowed to create this folder. If it is needed and still
    // missing, the gateway says so when it starts.
    if (!user.empty() && !check) braid::makeOwnFolder(braid::kStateFolder, user);
    if (!user.empty()) braid::becomeUser(user);
  } catch (const braid::SystemError& e) {
    tell(spdlog::level::err, e.what());
    return EXIT_FAILURE;
  }
  braid::allowDumps(coreDumps);  // after the change of the user, which affects the setting
  braid::LoadOptions options = loadOptions();
  std::optional<braid::Config> config = load(file, options);
  if (!config) return EXIT_FAILURE;
  if (check) {
    for (const braid::ConfigError& warning : config->warnings)
      tell(spdlog::level::warn, "warning: " + warning.toString());
    std::cout << file << ": the configuration is good\n";
    return EXIT_SUCCESS;
  }
  if (tryOut) {
    std::cout << braid::tryPaths(std::move(*config))
                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
    return EXIT_SUCCESS;
  }
  ::signal(SIGPIPE, SIG_IGN);  // must not end because a reader of the log went away
  braid::setupLogging(config->logLevel, braid::detectLogStyle());
  try {
    braid::Daemon daemon(std::move(*config), options, user.empty());
    return daemon.run() ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::bad_alloc&) {
    // What was in progress when memory ran out cannot be trusted. The host's settings are restored,
    // and a new start is quick.
    spdlog::critical("the machine has no memory left: the daemon ends");
  } catch (const std::exception& e) {
    spdlog::critical("{}", e.what());
  }
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return serve(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "braidd: %s\n", e.what());
    return EXIT_FAILURE;
  }
}
