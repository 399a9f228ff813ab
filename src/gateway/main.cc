// braidd: one gateway of a pair. docs/operations.md describes it for its users.

#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>

#include "gateway/daemon.h"
#include "host/linux/heap.h"
#include "host/linux/memory_reserve.h"
#include "host/linux/own_folder.h"
#include "host/linux/privileges.h"
#include "host/system_error.h"

namespace {

// Before the static initializers of libraries, which allocate.
[[gnu::constructor(101)]] void prepareHeap() {
  braid::returnLargeBlocks();
  braid::holdMemoryReserve();
}

braid::LoadOptions loadOptions() {
  braid::LoadOptions out;
  if (const char* folder = std::getenv("CREDENTIALS_DIRECTORY")) out.credentials = folder;
  return out;
}

// The checked file, or every mistake on stderr.
std::optional<braid::Config> load(const std::string& file, const braid::LoadOptions& options) {
  braid::ConfigResult result = braid::loadConfig(file, options);
  if (auto* errors = std::get_if<braid::ConfigErrors>(&result)) {
    for (const braid::ConfigError& e : *errors) std::cerr << e.toString() << "\n";
    return std::nullopt;
  }
  return std::get<braid::Config>(std::move(result));
}

int serve(int argc, char** argv) {
  CLI::App app{"Carries packets over all uplinks at once to the gateway at the other end."};
  std::string file, user;
  bool check = false, coreDumps = false;
  app.set_version_flag("--version", "braidd " BRAID_VERSION);
  app.add_option("-c,--config,file", file, "Configuration file (YAML)")->required();
  app.add_flag("--check", check, "Only read and check the configuration");
  app.add_option("--user", user, "User to run as; keeps the capabilities that are needed");
  app.add_flag("--core-dumps", coreDumps, "Let a crash leave a core dump: it holds the private key");
  CLI11_PARSE(app, argc, argv);

  try {
    // The user may not make it itself. Who cannot have it, and needs it, is told so when the gateway starts.
    if (!user.empty() && !check) braid::makeOwnFolder(braid::kStateFolder, user);
    if (!user.empty()) braid::becomeUser(user);
  } catch (const braid::SystemError& e) {
    std::cerr << e.what() << "\n";
    return EXIT_FAILURE;
  }
  braid::allowDumps(coreDumps);  // after the change of the user, which has a say in it
  braid::LoadOptions options = loadOptions();
  std::optional<braid::Config> config = load(file, options);
  if (!config) return EXIT_FAILURE;
  if (check) {
    for (const braid::ConfigError& warning : config->warnings)
      std::cerr << "warning: " << warning.toString() << "\n";
    std::cout << file << ": the configuration is good\n";
    return EXIT_SUCCESS;
  }
  ::signal(SIGPIPE, SIG_IGN);  // a reader of the log that went away is no reason to end
  braid::setupLogging(config->logLevel, braid::detectLogStyle());
  try {
    braid::Daemon daemon(std::move(*config), options);
    return daemon.run() ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::bad_alloc&) {
    // What was under way when memory ended cannot be trusted; the host is as it was, and a new start is soon done.
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
