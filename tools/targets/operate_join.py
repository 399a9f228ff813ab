"""Target of the first steps: the commands that a user types on two fresh Debian machines with the package installed,
until a download runs through both uplinks of the edge."""

import contextlib
import json
import os
import pathlib
import tempfile

from lab.netns import run
from packages.deb import Build
from packages.source import Source
from packages.trees import NATIVE

from . import MISSING, option, target
from ._builds import dependencies
from ._fresh import UPLINKS, Fresh, bridge

SUITE = "bookworm"
RATE = "20mbit"  # of each uplink, towards the edge
SERVER = "192.168.50.1"  # in the LAN behind the concentrator
SIZE = 20_000_000
LEAST = 0.2  # of the download's bytes, through each uplink


def _received(edge):
    """{uplink: bytes} that came through the tunnel."""
    out = {}
    for peer in json.loads(edge.run("braidctl", "paths", "--json"))["peers"]:
        for flow in peer["subflows"]:
            out[flow["uplink"]] = out.get(flow["uplink"], 0) + flow["received_bytes"]
    return out


def _serve(hub):
    """A LAN with a web server in it, and uplinks that have an end."""
    hub.run("ip", "address", "add", f"{SERVER}/24", "dev", "lan0")
    hub.run("ip", "link", "set", "lan0", "up")
    for name in UPLINKS:
        hub.run("tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", RATE, "burst", "32k", "latency", "60ms")
    hub.run("sh", "-c", f"head -c {SIZE} /dev/urandom >/var/www/html/file")
    return hub.run("sha256sum", "/var/www/html/file").split()[0]


def _join(hub, edge):
    """From two machines without a gateway to a download; {uplink: its share}."""
    digest = _serve(hub)
    hub.type("braidctl", "setup", "--yes")
    line = hub.type("braidctl", "invite", "van")
    edge.type("braidctl", "join", "--yes", given=line)
    before = _received(edge)
    edge.type("curl", "-sSf", "--max-time", "100", "-o", "/tmp/file", f"http://{SERVER}/file")
    if edge.run("sha256sum", "/tmp/file").split()[0] != digest:
        raise RuntimeError("the download has other bytes")
    after = _received(edge)
    return {name: round((after[name] - before.get(name, 0)) / SIZE, 2) for name in after}


@target("operate.1", "commands typed on two fresh Debian machines, the package installed, until a download has run "
        "through both uplinks, itself among them", "commands", at_most=4,
        options=[option("--package", metavar="FILE", help="this package of Debian 12, instead of building one")])
def first_steps(package):
    for what in ("boot", "package"):
        dependencies(what)
    zone = f"braid{os.getpid() % 10000}"
    detail = {"links": f"{RATE} each"}
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="braid-first-", dir="/var/tmp")))
        package = pathlib.Path(package) if package else Build(Source.of(), SUITE, NATIVE).run(work / "package")[0]
        detail["package"] = package.name
        between = stack.enter_context(bridge(f"w{zone}"))
        # The concentrator also has a default route, without which it would not know its own address. The route leads
        # nowhere.
        hub = Fresh(SUITE, "concentrator", 3, {"host0": [1]}, work, zone)
        edge = Fresh(SUITE, "edge", 2, {name: [3] for name in UPLINKS}, work, zone)
        for machine, tool in ((hub, "nginx-light"), (edge, "curl")):
            stack.callback(machine.close)
            machine.fill(package, tool)
            machine.start(between, *([f"--network-veth-extra=l{zone}:lan0"] if machine is hub else []))
        run("ip", "link", "set", f"l{zone}", "up")  # the other end of the LAN: outside, or it would be none
        try:
            shares = _join(hub, edge)
        except (RuntimeError, TimeoutError) as error:
            return None, {**detail, MISSING: f"{str(error)[-1500:]}\n{hub.told()[-1500:]}\n{edge.told()[-1500:]}"}
        typed = hub.typed + edge.typed
        own = sum(seconds for command, seconds in typed if "braidctl" in command)
        detail |= {"typed": [command for command, _ in typed], "seconds of each": [seconds for _, seconds in typed],
                   "seconds of braidctl": round(own, 2), "shares of the uplinks": shares}
        if min((shares.get(name, 0) for name in UPLINKS)) < LEAST:
            detail[MISSING] = f"{LEAST:.0%} of the bytes through each uplink"
    return len(typed), detail
