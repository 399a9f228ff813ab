#include "ctl/join/cli_join.h"

#include <ostream>

namespace braid {
namespace {

void addNewGateway(CLI::App* verb, NewGateway& options) {
  verb->add_option("--name", options.name, "Name of this gateway's files and unit")
      ->capture_default_str();
  verb->add_option("--dir", options.folder, "Folder of its files")->capture_default_str();
  verb->add_option("--network", options.networks,
                   "A network behind this gateway, or none; may be given several times")
      ->allow_extra_args(false);
  verb->add_flag("--yes", options.yes, "Ask nothing, and agree to what is proposed");
  verb->add_flag("--keep-router", options.keepRouter,
                 "Leave forwarding and NAT of this host as they are");
  verb->add_flag("--dry-run", options.dryRun, "Only show what would be written");
  verb->add_flag("--no-start", options.noStart, "Do not start the gateway");
  verb->add_flag("--json", options.json, "Print JSON");
}

void addInvite(CLI::App& app, InviteOptions& options, std::ostream& out, std::ostream& err) {
  CLI::App* verb = app.add_subcommand(
      "invite", "Print an invitation for another gateway (root, at the concentrator)");
  verb->add_option("NAME", options.name, "Name that the gateway is to have here")->required();
  verb->add_option("--address", options.addresses,
                   "HOST:PORT where this gateway is reached; may be given several times")
      ->allow_extra_args(false);
  verb->add_option(
          "--network", options.networks,
          "A network that the other gateway reaches through this one; may be given several times")
      ->allow_extra_args(false);
  verb->add_option("--valid-for", options.validFor, "How long it is good")->capture_default_str();
  verb->add_flag("--json", options.json, "Print JSON");
  verb->add_option("--socket", options.socket,
                   "Control socket: its path, or a name for /run/braid/NAME.sock");
  verb->callback([&] { invite(options, out, err); });
}

}  // namespace

void addJoinVerbs(CLI::App& app, JoinArguments& arguments, std::ostream& out, std::ostream& err) {
  addInvite(app, arguments.invite, out, err);

  JoinOptions& options = arguments.join;
  options.name = "edge";
  CLI::App* verb = app.add_subcommand(
      "join", "Make this machine an edge of the concentrator that invites it (root)");
  verb->add_option("LINE", arguments.hidden,
                   "The invitation. Better leave it out, and give it by standard input or at the "
                   "prompt: a command line "
                   "is kept by the shell, and for a moment seen in ps");
  verb->add_option("--file", options.file, "File that holds the invitation; -: the standard input");
  verb->add_option("--uplink", options.uplinks, "An interface to use; may be given several times")
      ->allow_extra_args(false);
  addNewGateway(verb, options);
  verb->callback([&] {
    if (options.line.empty()) options.line = arguments.hidden;
    join(options, out, err);
  });

  SetupOptions& concentrator = arguments.setup;
  concentrator.name = "concentrator";
  verb = app.add_subcommand("setup", "Make this machine a concentrator (root)");
  verb->add_option(
          "--tunnel", concentrator.tunnel,
          "ADDRESS/LENGTH of this end of the tunnel; may be given once for IPv4 and once for IPv6")
      ->allow_extra_args(false);
  verb->add_option("--port", concentrator.port, "UDP port to listen on")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  verb->add_option("--device", concentrator.device, "Name of the tunnel's device")
      ->capture_default_str();
  addNewGateway(verb, concentrator);
  verb->callback([&] { setup(concentrator, out, err); });
}

}  // namespace braid
