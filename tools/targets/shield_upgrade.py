"""Target of upgrades: an earlier build and this one understand each other, and this one takes over the other's
files."""

import contextlib
import os
import pathlib
import signal
import socket
import time

from lab import Download, Lab, Link, binary
from lab.bare import Machine
from lab.services import HTTP_PORT, Nginx
from lab.site import PUBLIC

from . import option, target
from ._builds import build, clone_of
from .streams import streams

# Chosen: the first commit whose settings have the names of today. It is older than names of paths, observed addresses,
# openings that ask, and counts of days and months.
OLD = "b8d404c1416af1775c6f925e885d87a55f660034"
LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
V4 = Lab.server_addresses()[0]
FILE = 12_000_000  # bytes; a second or two
SETTLED = 3  # seconds: a gateway saves its list of known initiators at most every 2 s
TOLD = 3  # seconds within which a silent edge is back by the notice of a concentrator that began again
ENDS = 5  # seconds within which a host hears that its stream has been reset
METERED = {"use": "normal", "metered": {"cap": "10GB"}}
COMPLAINTS = ("damaged", "does not hold", "unreadable", "is not used", " error: ", " critical: ")


class Pair:
    """A lab with an edge and a concentrator, each of a build of its own."""

    def __init__(self, edge, hub, settings=None):
        """`edge`, `hub`: folders of programs; `settings`: of both."""
        self.lab = Lab(LINKS)
        self._wanted = {"edge": edge, "concentrator": hub}, settings

    def __enter__(self):
        programs, settings = self._wanted
        self.lab.__enter__()
        try:
            self.nginx = Nginx(self.lab)
            self.file = self.nginx.add("file", FILE)
            self.lab.make_gateways(edge=settings, concentrator=settings)
            self.edge, self.hub = self.lab.edge_gateway, self.lab.gateway
            self.edge.config["uplinks"][0].update(METERED)
            for gateway in (self.hub, self.edge):
                gateway.programs = programs[gateway.name]
                gateway.start()
            self.edge.wait_up(subflows=2)
        except BaseException:
            self.lab.close()
            raise
        return self

    def __exit__(self, *error):
        self.lab.__exit__(*error)

    def replace(self, gateway, programs, number=signal.SIGTERM):
        """What an upgrade does: the daemon ends, and the other build's begins with its configuration and files."""
        gateway.stop(number)
        gateway.programs = programs
        gateway.start()

    def download(self, meanwhile=None):
        """Brings the file; `meanwhile`: what is done in its middle. It must arrive whole, over one connection."""
        download = Download(self.lab, f"http://{V4}{self.file}")
        if meanwhile:
            download.wait_for_size(FILE // 4)
            meanwhile()
        download.finish(60)
        assert download.sha256 == self.nginx.sha256[self.file], "the file differs"
        assert download.report["num_connects"] == 1, "more than one connection was made"

    def pings(self):
        out = self.lab.client.run("ping", "-n", "-q", "-c", 20, "-i", 0.05, "-s", 1000, V4, check=False)
        assert " 0% packet loss" in out, out

    def used(self):
        """Bytes of the metered uplink in its period."""
        return self.edge.status()["gateway"]["uplinks"][0]["metered"]["used_bytes"]

    def complaints(self):
        """Lines in which a daemon says that it cannot use a file."""
        return [line for gateway in self.lab.gateways()
                for line in self.lab.log(gateway.name).read_text(errors="replace").splitlines()
                if any(word in line for word in COMPLAINTS)]


def versions_mixed(edge, hub):
    """Packets and streams between two builds."""
    with Pair(edge, hub, streams(HTTP_PORT)) as pair:
        pair.download()
        pair.pings()
        before = pair.edge.status()["streams"]["accepted"]
        pair.download()
        assert pair.edge.status()["streams"]["accepted"] > before, "no stream was made"
        told = pair.lab.gateway.ctl("peers", "--json")
        assert '"protocol_version": 2' in told or '"protocol_version":2' in told, told


def traffic_and_counts(old, new):
    """One gateway after the other is upgraded during a download that travels as packets; then both go back."""
    with Pair(old, old) as pair:
        pair.download()
        used = pair.used()
        assert used > 1_000_000, f"{used} bytes were counted"
        for gateway in (pair.hub, pair.edge):
            pair.download(lambda gateway=gateway: pair.replace(gateway, new))
            pair.edge.wait_up(subflows=2)
        now, used = pair.used(), used + FILE // 10
        assert now >= used, f"the month's {used} bytes have become {now}"
        carried = pair.edge.status()["gateway"]["uplinks"][0]["carried"]
        assert carried and carried["month_bytes"] > 0, f"nothing of this month is counted: {carried}"
        assert not pair.complaints(), pair.complaints()
        used = pair.used()
        for gateway in (pair.hub, pair.edge):
            pair.download(lambda gateway=gateway: pair.replace(gateway, old))
            pair.edge.wait_up(subflows=2)
        assert pair.used() >= used, f"the way back has made {pair.used()} of the month's {used} bytes"
        assert not pair.complaints(), pair.complaints()


def initiators_known(old, new):
    """A concentrator is killed and upgraded. It tells the silent edge, which its predecessor knew."""
    with Pair(old, old) as pair:
        pair.pings()
        time.sleep(SETTLED)
        pair.replace(pair.hub, new, signal.SIGKILL)
        pair.lab.wait_for(pair.hub.up, "the edge is back, though nobody sent it anything", TOLD)
        assert not pair.complaints(), pair.complaints()


def streams_end(old, new):
    """A stream that is open during an upgrade is reset, and the next connection is a stream again."""
    for upgraded in ("edge", "hub"):
        with Pair(old, old, streams(HTTP_PORT)) as pair:
            with pair.lab.client.inside(socket.create_connection, (V4, HTTP_PORT), ENDS) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")
                assert client.recv(1000), "no answer"
                pair.replace(getattr(pair, upgraded), new)
                pair.edge.wait_up(subflows=2)
                client.settimeout(ENDS)
                with contextlib.suppress(ConnectionResetError):
                    client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")
                    assert not client.recv(1000), "the old stream still answers"
            pair.download()


def joined_stay(old, new):
    """Two machines become a pair by setup, invite and join of the old build, and are upgraded one after the other."""
    with Lab(LINKS) as lab, contextlib.ExitStack() as stack:
        machines = [Machine(lab, "hub", lab.concentrator), Machine(lab, "edge", lab.edge)]
        for machine in machines:
            stack.callback(machine.stop)
            machine.starts(True, braidd=str(old / "braidd"))
        hub, edge = machines

        def call(machine, programs, *words, given=None):
            done = machine.call(programs / "braidctl", *words, given=given)
            assert done.returncode == 0, f"braidctl {words[0]}: {done.stdout}{done.stderr}"
            return done.stdout

        def invite(programs, name):
            return call(hub, programs, "invite", name, "--address", f"{PUBLIC[0]}:4433")

        def answers():
            return edge.call("ping", "-c", "1", "-W", "1", "10.99.0.1").returncode == 0

        call(hub, old, "setup", "--yes", "--network", "192.168.100.0/24")
        call(edge, old, "join", "--yes", given=invite(old, "van"))
        unused = invite(old, "car")
        lab.wait_for(answers, "an answer of the hub")
        for machine, unit in ((hub, "braid@concentrator"), (edge, "braid@edge")):
            machine.starts(True, braidd=str(new / "braidd"))
            for words in (["disable", "--now"], ["enable", "--now"]):
                machine.call("systemctl", *words, unit)
            lab.wait_for(answers, f"an answer of the hub after the upgrade of {machine.name}", 15)
            call(machine, new, "check", f"/etc/braid/{unit.partition('@')[2]}.yaml")
            call(machine, new, "status")
        assert hub.files("/var/lib/braid/concentrator.peers.d") == ["van.yaml"], "the peer's file is not there"
        edge.call("systemctl", "disable", "--now", "braid@edge")
        edge.call(binary("braidctl"), "release", "edge")
        edge.call("sh", "-c", "rm -f /etc/braid/*")
        call(edge, new, "join", "--yes", "--network", "none", given=unused)
        lab.wait_for(answers, "an answer for a gateway that joined with an invitation of the old build")


@target("shield.upgrade", "checks of an upgrade from an earlier build that fail: either one at either end carries "
        "packets and streams; a download survives the upgrade of each end; counts, known initiators, peers that "
        "joined and open invitations stay; streams end; the way back", "checks", at_most=0,
        programs=["braidd", "braidctl", "linkemu"],
        options=[option("--old", default=OLD, metavar="COMMIT", help="the earlier build: another one is a look")])
def upgrade(old):
    new = pathlib.Path(binary("braidd")).parent
    old = build(clone_of(old), ["braidd", "braidctl"], "test")
    checks = {"old edge, new concentrator": (versions_mixed, old, new),
              "new edge, old concentrator": (versions_mixed, new, old),
              **{check.__name__.replace("_", " "): (check, old, new)
                 for check in (traffic_and_counts, initiators_known, streams_end, joined_stay)}}
    failed = {}
    for name, (check, *programs) in checks.items():
        try:
            check(*programs)
        except (AssertionError, RuntimeError, TimeoutError, OSError) as error:
            failed[name] = f"{type(error).__name__}: {str(error)[:1500]}"
    return len(failed), {"checks": list(checks), "failed": failed, "old": os.path.basename(old.parents[2])[:10]}
