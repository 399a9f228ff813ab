"""Target of the first steps: the commands that a user types on two fresh Debian machines with the package installed,
until a download runs through both uplinks of the edge."""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
import time

from lab.boot import ZoneMachine, enter
from lab.netns import run
from packages.deb import Build
from packages.source import Source
from packages.trees import NATIVE

from . import MISSING, option, target
from ._builds import dependencies

SUITE = "bookworm"
# Two networks between the machines: in each the concentrator is the edge's router. {name: (network, metric of routes)}
UPLINKS = {"host0": ("198.51.100", 100), "wan1": ("203.0.113", 200)}
RATE = "20mbit"  # of each uplink, towards the edge
SERVER = "192.168.50.1"  # in the LAN behind the concentrator
SIZE = 20_000_000
LEAST = 0.2  # of the download's bytes, through each uplink
_APT = ["apt-get", "-y", "-q", "--no-install-recommends"]


def _network(name, number, more):
    base, metric = UPLINKS[name]
    return (f"[Match]\nName={name}\n[Network]\nAddress={base}.{number}/24\n"
            + "".join(f"[Route]\nGateway={base}.{gateway}\nMetric={metric}\n" for gateway in more))


class _Fresh(ZoneMachine):
    """A machine with the package of Braid and one for the download, and networks; no gateway is configured."""

    def __init__(self, name, number, gateways, work, zone):
        super().__init__(SUITE, name, f"{UPLINKS['host0'][0]}.{number}", work, zone)
        self._number, self._gateways = number, gateways
        self.outside = f"{name[:1]}{zone}"  # the host's end of the second network
        self.typed = []

    def fill(self, package, tool):
        self.prepare()
        shutil.copy(package, self.tree / "root")
        enter(self.tree, "apt-get", "-q", "update")
        enter(self.tree, *_APT, "install", f"/root/{package.name}", tool)
        for name in UPLINKS:
            self.write(f"etc/systemd/network/10-{name}.network",
                       _network(name, self._number, self._gateways.get(name, [])))

    def start(self, bridge):
        self.boot(f"--network-veth-extra={self.outside}:wan1")
        run("ip", "link", "set", self.outside, "master", bridge, "up")
        for name in UPLINKS:
            self.wait(lambda name=name: UPLINKS[name][0] in self.run("ip", "-br", "address", "show", "dev", name),
                      f"the address of {name}", 30)

    def type(self, *command, given=None):
        """Runs a command as a person would type it and returns its output. Records the command and its time."""
        began = time.monotonic()
        options = {"timeout": 120}
        if given is not None:
            with tempfile.TemporaryFile("w+") as text:
                text.write(given)
                text.seek(0)
                said = self.run(*command, stdin=text, **options)
        else:
            said = self.run(*command, **options)
        self.typed.append((f"{self.name}: {' '.join(command)}", round(time.monotonic() - began, 2)))
        return said


def _received(edge):
    """{uplink: bytes} that came through the tunnel."""
    out = {}
    for peer in json.loads(edge.run("braidctl", "paths", "--json"))["peers"]:
        for flow in peer["subflows"]:
            out[flow["uplink"]] = out.get(flow["uplink"], 0) + flow["received_bytes"]
    return out


def _serve(hub):
    """A LAN with a web server in it, and uplinks that have an end."""
    hub.run("ip", "link", "add", "lan0", "type", "veth", "peer", "name", "lan1")
    hub.run("ip", "address", "add", f"{SERVER}/24", "dev", "lan0")
    for end in ("lan0", "lan1"):
        hub.run("ip", "link", "set", end, "up")
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


@contextlib.contextmanager
def _bridge(name):
    run("ip", "link", "add", name, "type", "bridge")
    try:
        run("ip", "link", "set", name, "up")
        yield name
    finally:
        run("ip", "link", "del", name, check=False)


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
        bridge = stack.enter_context(_bridge(f"w{zone}"))
        # The concentrator also has a default route, without which it would not know its own address. The route leads
        # nowhere.
        hub = _Fresh("concentrator", 3, {"host0": [1]}, work, zone)
        edge = _Fresh("edge", 2, {name: [3] for name in UPLINKS}, work, zone)
        for machine, tool in ((hub, "nginx-light"), (edge, "curl")):
            stack.callback(machine.close)
            machine.fill(package, tool)
            machine.start(bridge)
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
