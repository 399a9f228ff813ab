#include <ostream>
#include <stdexcept>

#include "base/printable.h"
#include "ctl/client/client.h"
#include "ctl/doctor/doctor.h"
#include "ctl/join/guard.h"
#include "ctl/verbs/verbs.h"
#include "gateway/command_line.h"
#include "gateway/config/units.h"

namespace braid {
namespace {

// "10m", "90s", "1h" in seconds, from 1 s to 1 h.
std::optional<double> sinceOf(std::string text) {
  if (text.ends_with('m')) text += "in";
  const std::optional<Duration> time = parseDuration(text);
  if (!time || *time < 1s || *time > 1h) return std::nullopt;
  return std::chrono::duration<double>(*time).count();
}

class CommandLine {
 public:
  CommandLine(std::ostream& out, std::ostream& err, const std::string& invitation)
      : out_(out), err_(err) {
    join_.line = invitation;
    app_.require_subcommand(1);
    group_ = "First steps";
    addSetup();
    addInvite();
    addJoin();
    addCheck();
    addDoctor();
    group_ = "What a gateway does";
    addStatus();
    addQuery("paths", "The subflows of each peer");
    addFlows();
    addQuery("peers", "The peers");
    addTop();
    addExplain();
    addTest();
    addRecovery();
    addTrace();
    group_ = "Keeping it";
    addQuery("reload", "Read the configuration again");
    addDrain();
    addFleet();
    addFirewall();
    addGuard();
    addDns();
    addFileVerbs();
  }

  int run(int argc, const char* const* argv) {
    try {
      if (auto ended = app_.read(argc, argv, out_, err_)) return *ended;
      if (!out_.flush()) throw std::runtime_error("cannot write the result; is the disk full?");
      return status_;
    } catch (const std::exception& error) {
      err_ << printableLines(error.what()) << '\n';
      return kExitFailure;
    }
  }

 private:
  void addJson(CLI::App* verb) { verb->add_flag("--json", json_, "Print JSON"); }
  void addSocket(CLI::App* verb) {
    verb->add_option("--socket", socket_,
                     "Control socket: its path, or a name for /run/braid/NAME.sock")
        ->type_name("SOCKET");
  }
  void addJsonAndSocket(CLI::App* verb) {
    addJson(verb);
    addSocket(verb);
  }

  CLI::App* add(const char* name, const char* help) {
    return app_.add_subcommand(name, help)->group(group_);
  }
  // A verb of a verb.
  static CLI::App* addTo(CLI::App* parent, const char* name, const char* help) {
    parent->require_subcommand(1);
    return parent->add_subcommand(name, help)->group("Verbs");
  }

  void addQuery(const char* cmd, const char* help) {
    CLI::App* verb = add(cmd, help);
    addSocket(verb);
    addJson(verb);
    verb->callback([this, cmd] { query(cmd, socket_, json_, out_); });
  }

  void addStatus() {
    CLI::App* verb = add("status", "The peers, their paths and the uplinks");
    verb->add_flag("--verbose", verbose_, "Addresses, keys, counters and causes of drops as well");
    addJsonAndSocket(verb);
    verb->callback([this] { query("status", socket_, json_, out_, verbose_); });
  }

  void addFlows() {
    CLI::App* verb = add("flows", "Flows and streams by their rate in one second");
    verb->add_flag("--all", all_, "The idle ones as well");
    addJsonAndSocket(verb);
    verb->callback([this] { flows(socket_, all_, json_, out_); });
  }

  void addRecovery() {
    CLI::App* verb = add("recovery", "What proactive recovery sends and what became of it");
    verb->add_option("PEER", peer_, "This peer only");
    addJsonAndSocket(verb);
    verb->callback([this] { recovery(peer_, socket_, json_, out_); });
  }

  void addTrace() {
    CLI::App* trace = add("trace", "Switch the recovery trace on or off");
    CLI::App* verb = addTo(trace, "on", "Add each decision to a file as a line of JSON");
    verb->add_option("FILE", file_, "The file, made if it is not there")->required();
    addJsonAndSocket(verb);
    verb->callback([this] { traceOn(file_, socket_, json_, out_); });
    verb = addTo(trace, "off", "End the trace");
    addJsonAndSocket(verb);
    verb->callback([this] { traceOff(socket_, json_, out_); });
  }

  void addExplain() {
    CLI::App* verb = add("explain", "What was bad lately, what it cost and what was done about it");
    verb->add_option("--since", since_, "How far to look back: 10m, 90s, 1h; an hour at most")
        ->type_name("TIME")
        ->check([](const std::string& text) {
          return sinceOf(text) ? "" : "a time from 1s to 1h, such as 10m, not '" + text + "'";
        })
        ->capture_default_str();
    addJsonAndSocket(verb);
    verb->callback([this] { explainPast(*sinceOf(since_), socket_, json_, out_); });
  }

  void addTop() {
    CLI::App* verb = add("top", "Paths, peers and flows by rate, live in the terminal");
    verb->add_flag("--once", once_, "One look at them, as where there is no terminal");
    verb->add_flag("--json", json_, "Print a line of JSON each second; with --once one");
    addSocket(verb);
    verb->callback([this] { top(socket_, once_, json_, out_); });
  }

  void addTest() {
    CLI::App* verb =
        add("test", "Measure latency, loss and throughput of each path to a peer, and of all");
    verb->add_option("PEER", test_.peer, "The peer; not needed while one only is up");
    verb->add_option("--path", test_.paths, "This path only (an uplink's name); may be repeated")
        ->type_name("NAME")
        ->allow_extra_args(false);
    verb->add_option("--seconds", test_.seconds, "How long each run takes")
        ->type_name("N")
        ->check(wholeNumber(1, 60))
        ->capture_default_str();
    verb->add_flag("--metered", test_.metered, "Metered paths as well, without asking");
    addJsonAndSocket(verb);
    verb->callback([this] {
      test_.json = json_;
      test_.socket = socket_;
      testPaths(test_, out_);
    });
  }

  void addDrain() {
    CLI::App* verb = add("drain", "Before a restart: start no new streams, wait for the open ones");
    verb->add_option("--seconds", drainSeconds_, "How long to wait for them")
        ->type_name("N")
        ->check(wholeNumber(1, 300))
        ->capture_default_str();
    addJsonAndSocket(verb);
    verb->callback([this] { drain(drainSeconds_, socket_, json_, out_); });
  }

  void addCheck() {
    CLI::App* verb = add("check", "Check a configuration file");
    verb->add_option("FILE", file_, "Configuration (NAME.yaml)")->required();
    addJson(verb);
    verb->callback([this] { status_ = check(file_, json_, out_) ? kExitOk : kExitFailure; });
  }

  void addFleet() {
    CLI::App* fleet = add("fleet", "Look at the configurations of many gateways");
    CLI::App* verb =
        addTo(fleet, "check", "Check the configurations of a folder against each other");
    verb->add_option("DIR", folder_, "Folder with NAME.yaml and NAME.crt of each gateway")
        ->required();
    addJson(verb);
    verb->callback([this] { status_ = checkFleet(folder_, json_, out_) ? kExitOk : kExitFailure; });
  }

  void addFileVerbs() {
    CLI::App* verb = add("keygen", "Make a key and a certificate, print the pin");
    verb->add_option("NAME", name_, "Writes NAME.key and NAME.crt")->required();
    verb->add_option("--dir", folder_, "Folder to write to")
        ->type_name("FOLDER")
        ->capture_default_str();
    addJson(verb);
    verb->callback([this] { keygen(name_, folder_, json_, out_); });

    verb = add("pin", "Print the pin of a certificate");
    verb->add_option("FILE", file_, "Certificate (NAME.crt)")->required();
    addJson(verb);
    verb->callback([this] { pin(file_, json_, out_); });

    verb = add("version", "Print the version of braidctl, with --socket of the daemon too");
    addJsonAndSocket(verb);
    verb->callback([this] { version(socket_, json_, out_); });
  }

  void addInvite() {
    CLI::App* verb =
        add("invite", "Print an invitation for another gateway (root, at the concentrator)");
    verb->add_option("NAME", invite_.name, "Name that the gateway is to have here")->required();
    verb->add_option("--address", invite_.addresses,
                     "HOST:PORT where this gateway is reached; may be given several times")
        ->type_name("HOST:PORT")
        ->allow_extra_args(false);
    verb->add_option("--network", invite_.networks,
                     "A network that the other gateway reaches through this one; may be given "
                     "several times")
        ->type_name("NETWORK")
        ->allow_extra_args(false);
    verb->add_option("--valid-for", invite_.validFor, "How long it is good")
        ->type_name("TIME")
        ->capture_default_str();
    addJsonAndSocket(verb);
    verb->callback([this] { invite(invite_, socket_, json_, out_, err_); });
  }

  static void addNewGateway(CLI::App* verb, NewGateway& options) {
    verb->add_option("--name", options.name, "Name of this gateway's files and unit")
        ->type_name("NAME")
        ->capture_default_str();
    verb->add_option("--dir", options.folder, "Folder of its files")
        ->type_name("FOLDER")
        ->capture_default_str();
    verb->add_option("--network", options.networks,
                     "A network behind this gateway, or none; may be given several times")
        ->type_name("NETWORK")
        ->allow_extra_args(false);
    verb->add_flag("--yes", options.yes, "Ask nothing, and agree to what is proposed");
    verb->add_flag("--keep-router", options.keepRouter,
                   "Leave forwarding and NAT of this host as they are");
    verb->add_flag("--dry-run", options.dryRun, "Only show what would be written");
    verb->add_flag("--no-start", options.noStart, "Do not start the gateway");
    verb->add_flag("--json", options.json, "Print JSON");
  }

  void addJoin() {
    join_.name = "edge";
    CLI::App* verb =
        add("join", "Make this machine an edge of the concentrator that invites it (root)");
    verb->add_option("LINE", hidden_,
                     "The invitation. Better leave it out, and give it by standard input or at "
                     "the prompt: a command line is kept by the shell, and for a moment seen in "
                     "ps");
    verb->add_option("--file", join_.file, "File that holds the invitation; -: the standard input")
        ->type_name("FILE");
    verb->add_option("--uplink", join_.uplinks,
                     "An interface to use, and what it is called; may be given several times")
        ->type_name("INTERFACE[=NAME]")
        ->allow_extra_args(false);
    verb->add_option("--metered", join_.metered,
                     "An uplink that is paid for by volume, and what it may carry in a month, such "
                     "as wwan0=50GB; or none; may be given several times")
        ->type_name("INTERFACE[=CAP]")
        ->allow_extra_args(false);
    verb->add_flag("--everything", join_.everything,
                   "Agree that all traffic goes through the tunnel, if the invitation says so");
    verb->add_option("--confirm-within", join_.confirmWithin,
                     "With a route for everything, take all back unless the user says at the "
                     "terminal within this time that this machine is still reached; 0: do not ask. "
                     "With --yes nobody is asked")
        ->type_name("TIME")
        ->capture_default_str();
    addNewGateway(verb, join_);
    verb->callback([this] {
      if (join_.line.empty()) join_.line = hidden_;
      join(join_, out_, err_);
    });
  }

  void addSetup() {
    setup_.name = "concentrator";
    CLI::App* verb = add("setup", "Make this machine a concentrator (root)");
    verb->add_option("--tunnel", setup_.tunnel,
                     "ADDRESS/LENGTH of this end of the tunnel; may be given once for IPv4 and "
                     "once for IPv6")
        ->type_name("ADDRESS")
        ->allow_extra_args(false);
    verb->add_option("--port", setup_.port, "UDP port to listen on")
        ->capture_default_str()
        ->type_name("PORT")
        ->check(wholeNumber(1, 65535));
    verb->add_option("--device", setup_.device, "Name of the tunnel's device")
        ->type_name("DEVICE")
        ->capture_default_str();
    verb->add_flag("--between-peers", setup_.betweenPeers,
                   "Let the edges reach each other's networks; not asked then");
    addNewGateway(verb, setup_);
    verb->callback([this] { setup(setup_, out_, err_); });
  }

  void addDns() {
    CLI::App* dns = add("dns", "Name servers behind the tunnel, for this host");
    auto addVerb = [&](const char* name, const char* help) {
      CLI::App* verb = addTo(dns, name, help);
      verb->add_option("FILE", file_, "Configuration, or its name in /etc/braid")->required();
      addJson(verb);
      return verb;
    };
    addVerb("set", "Hand those of the configuration to systemd-resolved or resolvconf (root)")
        ->callback([this] { dnsSet(configFile(file_), json_, out_); });
    addVerb("remove", "Take them back (root)")->callback([this] {
      dnsRemove(configFile(file_), json_, out_);
    });
    addVerb("show", "Show which servers are asked over each uplink")->callback([this] {
      dnsShow(configFile(file_), json_, out_);
    });
  }

  void addDoctor() {
    CLI::App* verb = add("doctor", "Look for what is wrong with a gateway and its host");
    verb->add_option("FILE", file_, "Configuration, or its name in /etc/braid; else the daemon's");
    addJsonAndSocket(verb);
    verb->callback([this] { status_ = doctor(file_, socket_, json_, out_, err_); });
  }

  CLI::App* addFirewallVerb(CLI::App* firewall, const char* name, const char* help) {
    CLI::App* verb = addTo(firewall, name, help);
    verb->add_option("FILE", file_, "Configuration, or its name in /etc/braid; else the daemon's");
    addJsonAndSocket(verb);
    return verb;
  }

  void addFirewall() {
    CLI::App* firewall = add(
        "firewall", "Let the gateway's packets through ufw, firewalld, Docker's rules and others");
    CLI::App* verb = addFirewallVerb(firewall, "show",
                                     "What is dropped, by which chain, and what lets it through");
    verb->callback([this] {
      status_ = showFirewall(configPath(file_, socket_), json_, out_) ? kExitOk : kExitFailure;
    });
    verb =
        addFirewallVerb(firewall, "allow", "Have the firewall's own program let it through (root)");
    verb->add_flag("--into-chains", intoChains_,
                   "Add rules to chains of no known program, too; its next reload loses them");
    verb->callback([this] {
      bool open = allowFirewall(configPath(file_, socket_), intoChains_, json_, out_);
      status_ = open ? kExitOk : kExitFailure;
    });
    verb = addFirewallVerb(firewall, "remove", "Take back what 'allow' did (root)");
    verb->callback([this] { removeFirewall(configPath(file_, socket_), json_, out_); });
  }

  void addGuard() {
    CLI::App* guard =
        add("guard", "What keeps packets from leaving in clear while no gateway runs (root)");
    CLI::App* verb =
        addTo(guard, "apply",
              "Put it into effect where 'device.when-down' is 'block', and else remove it");
    verb->add_option("FILE", file_, "Configuration, or its name in /etc/braid")->required();
    addJson(verb);
    verb->callback([this] { applyGuard(file_, json_, out_); });
    verb = add("release", "Remove the guard: packets then take the host's own routes (root)");
    verb->add_option("FILE", file_, "Configuration, or its name in /etc/braid")->required();
    addJson(verb);
    verb->callback([this] { releaseGuard(file_, json_, out_); });
  }

  std::ostream &out_, &err_;
  Program app_{"braidctl",
               "braidctl " BRAID_VERSION,
               "Makes gateways, joins them, and shows what they do.",
               {"braidctl setup                      # at the server: makes a concentrator",
                "braidctl invite van                 # there: an invitation for the gateway 'van'",
                "braidctl join                       # at the router: asks for the invitation",
                "braidctl status --socket edge       # of braid@edge, where several daemons run"}};
  std::string group_;  ///< heading of the verbs that are added, in --help
  std::string socket_, name_, folder_ = ".", file_, peer_;
  bool json_ = false, once_ = false, verbose_ = false, all_ = false, intoChains_ = false;
  std::string since_ = "10m";
  unsigned drainSeconds_ = 10;
  TestWish test_;
  InviteOptions invite_;
  JoinOptions join_;
  SetupOptions setup_;
  std::string hidden_;    ///< the argument LINE, which was overwritten in the command line
  int status_ = kExitOk;  ///< of a verb with more results than success
};

}  // namespace

int runBraidctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                const std::string& invitation) {
  return CommandLine(out, err, invitation).run(argc, argv);
}

}  // namespace braid
