"""The lab for humans: python3 -m lab up | list | exec NODE COMMAND... | clean."""

import argparse
import os
import signal
import sys

from . import Lab, Link, clean
from .services import Nginx

WIFI, LTE = Link("wifi", 50, 20, 0.01), Link("lte", 30, 60, 0.001)


def up(arguments):
    """A running pair with nginx, until ^C."""
    fetch = "scripts/lab exec client curl -o /dev/null"
    with Lab([WIFI, LTE], sites=arguments.sites, mode=arguments.mode) as lab:
        nginx = Nginx(lab)
        nginx.add("100m", 100_000_000)
        if not arguments.no_gateways:
            lab.start_gateways()
        print(f"{lab.name} is up: wifi 50 Mbit/s 20 ms 1 % loss, lte 30 Mbit/s 60 ms 0.1 % loss.\n"
              f"  {fetch} http://{Lab.server_addresses()[0]}/100m   through Braid\n"
              f"  {fetch} http://{Lab.server_addresses(0)[0]}/100m   over wifi only\n"
              f"  scripts/lab exec edge ip addr\n"
              f"  configurations, control sockets and logs: {lab.directory}\n"
              "^C ends it.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            pass


def execute(arguments):
    running = [name for name, alive in clean.live_labs().items() if alive]
    if len(running) != 1:
        sys.exit(f"{len(running)} labs are running; name one by 'ip netns exec LAB-NODE COMMAND'")
    words = ["ip", "netns", "exec", f"{running[0]}-{arguments.node}", *(arguments.command or ["bash"])]
    os.execvp(words[0], words)


def main():
    parser = argparse.ArgumentParser(prog="lab", description="The network lab of Braid.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("up", help="a pair of gateways with nginx behind it, until ^C")
    verb.add_argument("--sites", type=int, default=1, help="edge gateways (each with a client)")
    verb.add_argument("--mode", choices=["tun", "tap"], default="tun")
    verb.add_argument("--no-gateways", action="store_true", help="links and hosts only")
    verbs.add_parser("list", help="labs on this machine")
    verb = verbs.add_parser("exec",
                            help="run a command (default: a shell) at a node: client, edge, concentrator, server")
    verb.add_argument("node")
    verb.add_argument("command", nargs=argparse.REMAINDER)
    verbs.add_parser("clean", help="remove what labs that were killed left behind")
    arguments = parser.parse_args()
    if arguments.verb == "up":
        up(arguments)
    elif arguments.verb == "list":
        for name, alive in clean.live_labs().items():
            print(name, "running" if alive else "left over")
    elif arguments.verb == "exec":
        execute(arguments)
    else:
        for name in clean.remove_leftovers():
            print("removed", name)


if __name__ == "__main__":
    main()
