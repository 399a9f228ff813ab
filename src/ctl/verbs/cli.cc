#include "ctl/verbs/cli.h"

#include <CLI/CLI.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client/client.h"
#include "ctl/doctor/doctor.h"
#include "ctl/join/cli_join.h"
#include "ctl/verbs/verbs.h"

namespace braid {
namespace {

struct Arguments {
  std::string socket, name, folder = ".", file, peer;
  bool json = false;
  double since = 600;
  bool once = false;
  TestWish test;
  int status = kExitOk;  ///< of a verb with more results than success
};

void addSocket(CLI::App* verb, Arguments& arguments) {
  verb->add_option("--socket", arguments.socket,
                   "Control socket: its path, or a name for /run/braid/NAME.sock");
}

void addQuery(CLI::App& app, const std::string& cmd, const std::string& help, Arguments& arguments,
              std::ostream& out) {
  CLI::App* verb = app.add_subcommand(cmd, help);
  addSocket(verb, arguments);
  verb->add_flag("--json", arguments.json, "Print JSON");
  verb->callback([&arguments, &out, cmd] { query(cmd, arguments.socket, arguments.json, out); });
}

void addRecoveryVerbs(CLI::App& app, Arguments& arguments, std::ostream& out) {
  CLI::App* verb =
      app.add_subcommand("recovery", "What proactive recovery sends and what became of it");
  verb->add_option("PEER", arguments.peer, "This peer only");
  verb->add_flag("--json", arguments.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] { recovery(arguments.peer, arguments.socket, arguments.json, out); });

  CLI::App* trace = app.add_subcommand("trace", "Switch the recovery trace on or off");
  trace->require_subcommand(1);
  verb = trace->add_subcommand("on", "Add each decision to a file as a line of JSON");
  verb->add_option("FILE", arguments.file, "The file, made if it is not there")->required();
  verb->add_flag("--json", arguments.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] { traceOn(arguments.file, arguments.socket, arguments.json, out); });
  verb = trace->add_subcommand("off", "End the trace");
  verb->add_flag("--json", arguments.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] { traceOff(arguments.socket, arguments.json, out); });
}

void addExplain(CLI::App& app, Arguments& arguments, std::ostream& out) {
  CLI::App* verb =
      app.add_subcommand("explain", "What was bad lately, what it cost and what was done about it");
  verb->add_option("--since", arguments.since,
                   "How far to look back: 10m, 90s, 1h; an hour at most")
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, double>{{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}},
          CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME"))
      ->check(CLI::Range(1, 3600))
      ->default_str("10m");
  verb->add_flag("--json", arguments.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] { explainPast(arguments.since, arguments.socket, arguments.json, out); });
}

void addTest(CLI::App& app, Arguments& arguments, std::ostream& out) {
  TestWish& wish = arguments.test;
  CLI::App* verb = app.add_subcommand(
      "test", "Measure latency, loss and throughput of each path to a peer, and of all");
  verb->add_option("PEER", wish.peer, "The peer; not needed while one only is up");
  verb->add_option("--path", wish.paths, "This path only (an uplink's name); may be repeated")
      ->expected(1);
  verb->add_option("--seconds", wish.seconds, "How long each run takes")
      ->check(CLI::Range(1, 60))
      ->capture_default_str();
  verb->add_flag("--metered", wish.metered, "Metered paths as well, without asking");
  verb->add_flag("--json", wish.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] {
    wish.socket = arguments.socket;
    testPaths(wish, out);
  });
}

void addTop(CLI::App& app, Arguments& arguments, std::ostream& out) {
  CLI::App* verb =
      app.add_subcommand("top", "Paths, peers and flows by rate, live in the terminal");
  verb->add_flag("--once", arguments.once, "One look at them, as where there is no terminal");
  verb->add_flag("--json", arguments.json, "Print a line of JSON each second; with --once one");
  addSocket(verb, arguments);
  verb->callback([&] { top(arguments.socket, arguments.once, arguments.json, out); });
}

void addDoctor(CLI::App& app, Arguments& arguments, std::ostream& out, std::ostream& err) {
  CLI::App* verb =
      app.add_subcommand("doctor", "Look for what is wrong with a gateway and its host");
  verb->add_option("FILE", arguments.file,
                   "Configuration, or its name in /etc/braid; else the daemon's");
  verb->add_flag("--json", arguments.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] {
    arguments.status = doctor(arguments.file, arguments.socket, arguments.json, out, err);
  });
}

void addDaemonVerbs(CLI::App& app, Arguments& arguments, std::ostream& out) {
  const std::pair<const char*, const char*> kTables[] = {
      {"status", "The gateway, its uplinks and peers"},
      {"paths", "The subflows of each peer"},
      {"flows", "The inner flows of each peer, largest first"},
      {"peers", "The peers"}};
  for (auto [cmd, help] : kTables) addQuery(app, cmd, help, arguments, out);
  addRecoveryVerbs(app, arguments, out);
  addExplain(app, arguments, out);
  addTop(app, arguments, out);
  addTest(app, arguments, out);
  addQuery(app, "reload", "Read the configuration again", arguments, out);
}

void addFileVerbs(CLI::App& app, Arguments& arguments, std::ostream& out) {
  CLI::App* verb = app.add_subcommand("keygen", "Make a key and a certificate, print the pin");
  verb->add_option("NAME", arguments.name, "Writes NAME.key and NAME.crt")->required();
  verb->add_option("--dir", arguments.folder, "Folder to write to")->capture_default_str();
  verb->add_flag("--json", arguments.json, "Print JSON");
  verb->callback([&] { keygen(arguments.name, arguments.folder, arguments.json, out); });

  verb = app.add_subcommand("pin", "Print the pin of a certificate");
  verb->add_option("FILE", arguments.file, "Certificate (NAME.crt)")->required();
  verb->add_flag("--json", arguments.json, "Print JSON");
  verb->callback([&] { pin(arguments.file, arguments.json, out); });

  verb = app.add_subcommand("check", "Check a configuration file");
  verb->add_option("FILE", arguments.file, "Configuration (NAME.yaml)")->required();
  verb->add_flag("--json", arguments.json, "Print JSON");
  verb->callback([&] {
    arguments.status = check(arguments.file, arguments.json, out) ? kExitOk : kExitFailure;
  });

  CLI::App* fleet = app.add_subcommand("fleet", "Look at the configurations of many gateways");
  fleet->require_subcommand(1);
  verb = fleet->add_subcommand("check", "Check the configurations of a folder against each other");
  verb->add_option("DIR", arguments.folder, "Folder with NAME.yaml and NAME.crt of each gateway")
      ->required();
  verb->add_flag("--json", arguments.json, "Print JSON");
  verb->callback([&] {
    arguments.status = checkFleet(arguments.folder, arguments.json, out) ? kExitOk : kExitFailure;
  });

  verb = app.add_subcommand("version",
                            "Print the version of braidctl, with --socket of the daemon too");
  verb->add_flag("--json", arguments.json, "Print JSON");
  addSocket(verb, arguments);
  verb->callback([&] { version(arguments.socket, arguments.json, out); });
}

}  // namespace

int runBraidctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                const std::string& invitation) {
  Arguments arguments;
  JoinArguments joining;
  joining.join.line = invitation;
  CLI::App app("Looks into a running braidd, makes keys and checks configurations.", "braidctl");
  app.require_subcommand(1);
  addDaemonVerbs(app, arguments, out);
  addFileVerbs(app, arguments, out);
  addJoinVerbs(app, joining, out, err);
  addDoctor(app, arguments, out, err);
  try {
    app.parse(argc, argv);
    if (!out.flush()) throw std::runtime_error("cannot write the result; is the disk full?");
    return arguments.status;
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kExitOk : kExitUsage;
  } catch (const std::exception& error) {
    err << error.what() << '\n';
    return kExitFailure;
  }
}

}  // namespace braid
