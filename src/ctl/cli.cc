#include "ctl/cli.h"

#include <CLI/CLI.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/verbs.h"

namespace braid {
namespace {

struct Arguments {
  std::string socket, name, folder = ".", file, peer;
  bool json = false;
};

void addSocket(CLI::App* verb, Arguments& arguments) {
  verb->add_option("--socket", arguments.socket,
                   "Control socket: its path, or a name for /run/braid/NAME.sock");
}

CLI::App* addQuery(CLI::App& app, const std::string& cmd, const std::string& help, Arguments& arguments,
                   std::ostream& out) {
  CLI::App* verb = app.add_subcommand(cmd, help);
  addSocket(verb, arguments);
  verb->callback([&arguments, &out, cmd] { query(cmd, arguments.socket, arguments.json, out); });
  return verb;
}

void addRecoveryVerbs(CLI::App& app, Arguments& arguments, std::ostream& out) {
  CLI::App* verb = app.add_subcommand("recovery", "What proactive recovery sends and what became of it");
  verb->add_option("PEER", arguments.peer, "This peer only");
  verb->add_flag("--json", arguments.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] { recovery(arguments.peer, arguments.socket, arguments.json, out); });

  CLI::App* trace = app.add_subcommand("trace", "Switch the recovery trace on or off");
  trace->require_subcommand(1);
  verb = trace->add_subcommand("on", "Add each decision to a file as a line of JSON");
  verb->add_option("FILE", arguments.file, "The file, made if it is not there")->required();
  addSocket(verb, arguments);
  verb->callback([&] { traceOn(arguments.file, arguments.socket, out); });
  verb = trace->add_subcommand("off", "End the trace");
  addSocket(verb, arguments);
  verb->callback([&] { traceOff(arguments.socket, out); });
}

void addDaemonVerbs(CLI::App& app, Arguments& arguments, std::ostream& out) {
  const std::pair<const char*, const char*> kTables[] = {
      {"status", "The gateway, its uplinks and peers"},
      {"paths", "The subflows of each peer"},
      {"flows", "The inner flows of each peer, largest first"},
      {"peers", "The peers"}};
  for (auto [cmd, help] : kTables) {
    addQuery(app, cmd, help, arguments, out)->add_flag("--json", arguments.json, "Print JSON");
  }
  addRecoveryVerbs(app, arguments, out);
  addQuery(app, "reload", "Read the configuration again", arguments, out);
}

void addFileVerbs(CLI::App& app, Arguments& arguments, std::ostream& out) {
  CLI::App* verb = app.add_subcommand("keygen", "Make a key and a certificate, print the pin");
  verb->add_option("NAME", arguments.name, "Writes NAME.key and NAME.crt")->required();
  verb->add_option("--dir", arguments.folder, "Folder to write to")->capture_default_str();
  verb->callback([&] { keygen(arguments.name, arguments.folder, out); });

  verb = app.add_subcommand("pin", "Print the pin of a certificate");
  verb->add_option("FILE", arguments.file, "Certificate (NAME.crt)")->required();
  verb->callback([&] { pin(arguments.file, out); });

  verb = app.add_subcommand("check", "Check a configuration file");
  verb->add_option("FILE", arguments.file, "Configuration (NAME.yaml)")->required();
  verb->callback([&] { check(arguments.file, out); });

  verb = app.add_subcommand("version", "Print the version of braidctl, with --socket of the daemon too");
  addSocket(verb, arguments);
  verb->callback([&] { version(arguments.socket, out); });
}

}  // namespace

int runBraidctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  Arguments arguments;
  CLI::App app("Looks into a running braidd, makes keys and checks configurations.", "braidctl");
  app.require_subcommand(1);
  addDaemonVerbs(app, arguments, out);
  addFileVerbs(app, arguments, out);
  try {
    app.parse(argc, argv);
    if (!out.flush()) throw std::runtime_error("cannot write the result; is the disk full?");
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kExitOk : kExitUsage;
  } catch (const std::exception& error) {
    err << error.what() << '\n';
    return kExitFailure;
  }
}

}  // namespace braid
