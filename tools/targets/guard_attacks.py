"""Target of attacks by the second implementation (tests/attacks.yaml): the service that an honest peer of the same
gateway still gets, on real kernels.

Both cases cost the machine the attacker and its datagrams. In one they come to the daemon, in the other to a socket of
a plain process beside it, which counts them. What lies between is what the daemon does with them. During one download
both cases take turns of two seconds, so that other programs of the machine disturb both."""

import base64
import contextlib
import itertools
import json
import re
import signal
import socket
import subprocess
import threading
import time

import yaml

from lab import Lab, Wire, median, percentile
from lab.gateway import PORT
from lab.services import HTTP_PORT, Nginx
from lab.site import PUBLIC

from . import at_least, option, require, target
from ._builds import ROOT
from .guard_second import DEBIAN_PYTHON, environment
from .streams import streams

TABLE = ROOT / "tests/attacks.yaml"
FIELDS = {"id", "targets", "by", "does", "aims"}
ATTACKS, ROUNDS, SECONDS, MBIT = 10, 3, 4, 5
DAEMON, SINK = "daemon", "sink"
SETTLES = 0.3  # seconds at the beginning of a turn that belong to none
KEPT = 0.9  # share of its rate at which the attacker must have sent
ARRIVED = 0.9  # share of the datagrams that the sink must have counted
PATIENCE_MS = 50  # by which a ping's 99th percentile may grow
PAUSE, LATEST_MS = 0.02, 2000  # seconds between two pings; a later answer counts as this one
MALFORMED = {"bad_frame", "bad_seal", "unknown_type"}  # drops that show an attack which the daemon did not understand
SERVER = Lab.server_addresses()[0]
STRANGERS = [f"10.{100 + network}.0.{host}" for network in range(16) for host in range(1, 17)]
SINK_PORT = PORT + 1
FILE_SIZE, REQUESTS = 32 << 20, 1000  # of the download: more than a round can bring
_ECHO = re.compile(r"^\[(\d+\.\d+)\] .*icmp_seq=(\d+) .*time=([\d.]+) ms", re.MULTILINE)


def read(text, wanted):
    """{id: row} of the table, of the rows that the target `wanted` measures. ValueError for a row that is not whole or
    there twice."""
    rows = yaml.safe_load(text)["attacks"]
    if any(set(row) != FIELDS for row in rows) or len({row["id"] for row in rows}) != len(rows):
        raise ValueError("a row is not whole, or there twice")
    return {row["id"]: row for row in rows if wanted in row["targets"]}


class Attacker:
    """The process of the attacker (tests/second/attacker.py), which has the key of the second site's edge."""

    def __init__(self, lab, file):
        self._lab, site = lab, lab.sites[1]
        address = site.link_addresses(0)[0][0]
        site.edge.ip("route", "add", "local", "10.96.0.0/11", "dev", "lo")
        lab.concentrator.route("10.96.0.0/11", "via", address)
        pin = base64.b64decode(lab.edge_gateway.config["peers"][0]["pin"].removeprefix("sha256:"))
        key, certificate = (lab.directory / f"edge1.{suffix}" for suffix in ("key", "crt"))
        self._process = lab.start(
            site.edge, "attacker",
            [DEBIAN_PYTHON, "-m", "second.attacker", "--daemon", PUBLIC[0], "--port", PORT, "--sink-port", SINK_PORT,
             "--pin", pin.hex(), "--key", key, "--certificate", certificate, "--source", address, "--host",
             site.client_address[0], "--server", SERVER, "--file", file, "--strangers", *STRANGERS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())

    def ask(self, **words):
        print(json.dumps(words), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the attacker has ended\n" + self._lab.log_tail("attacker"))
        return json.loads(line)


@contextlib.contextmanager
def _sink(lab, counted):
    """A plain process at the concentrator that counts datagrams; `counted` gets their number."""
    process = lab.start(lab.concentrator, SINK, [DEBIAN_PYTHON, "-m", "second.sink", PUBLIC[0], SINK_PORT],
                        stdout=subprocess.PIPE, text=True, env=environment())
    process.stdout.readline()
    try:
        yield
    finally:
        lab.stop(process, signal.SIGTERM)
        counted.append(int(process.stdout.readline() or 0))


class Download(threading.Thread):
    """One connection of the honest peer's client that brings a file again and again. `arrivals`: (time by the monotonic
    clock, bytes so far)."""

    def __init__(self, lab, file):
        super().__init__(daemon=True)
        self.arrivals = []
        self._connection = lab.client.inside(socket.create_connection, (SERVER, HTTP_PORT), 10)
        self._connection.sendall(f"GET {file} HTTP/1.1\r\nHost: lab\r\n\r\n".encode() * REQUESTS)
        self.start()

    def run(self):
        buffer, size = bytearray(1 << 20), 0
        with contextlib.suppress(OSError):  # stop(), or silence that the goodput shows
            while got := self._connection.recv_into(buffer):
                size += got
                self.arrivals.append((time.monotonic(), size))

    def stop(self):
        self._connection.shutdown(socket.SHUT_RDWR)
        self.join()
        self._connection.close()

    def size(self, begin, end):
        """Bytes that came between two times."""
        sizes = [size for at, size in self.arrivals if begin <= at <= end]
        return sizes[-1] - sizes[0] if sizes else 0


@contextlib.contextmanager
def _pings(lab, out):
    """Adds to `out` (when each was sent, by the monotonic clock; milliseconds until its answer)."""
    log = lab.log("pings")
    log.unlink(missing_ok=True)
    process = lab.start(lab.client, "pings", ["ping", "-D", "-n", "-i", PAUSE, SERVER])
    try:
        yield
    finally:
        lab.stop(process, signal.SIGINT)
        out += sent_and_answered(log.read_text(errors="replace"), time.time() - time.monotonic())


def sent_and_answered(text, apart):
    """Of the text of ping -D, also for pings without an answer before the last one. `apart`: by how much the clock of
    the text is ahead."""
    answers = {int(number): (float(at) - apart - float(took) / 1e3, float(took))
               for at, number, took in _ECHO.findall(text)}
    out = []
    for number in range(min(answers, default=1), max(answers, default=0) + 1):
        out.append(answers.get(number) or (out[-1][0] + PAUSE, LATEST_MS))
    return out


def _beside(lab, attacker, attack, order, seconds, file):
    """The service of the honest peer beside an attack on the daemon, and on the sink."""
    attacker.ask(attack=attack, seconds=seconds, mbit=MBIT)
    before, pings, download = lab.gateway.drops(), [], Download(lab, file)
    try:
        with _pings(lab, pings):
            time.sleep(1)
            told = attacker.ask(order=order)
    finally:
        download.stop()
    after = lab.gateway.drops()
    return {"alive": told["alive"], **{to: turns(told["slices"], to, download, pings) for to in order},
            "drops": {cause: count - before[cause] for cause, count in after.items() if count > before[cause]}}


def turns(slices, to, download, pings):
    """What the peer got while the attack went there."""
    mine = [(each["from"] + SETTLES, each["until"]) for each in slices if each["to"] == to]
    return {"mbit": sum(download.size(*times) for times in mine) * 8e-6 / sum(end - begin for begin, end in mine),
            "pings": [took for at, took in pings if any(begin <= at < end for begin, end in mine)],
            "attack mbit": min(each["mbit"] for each in slices if each["to"] == to),
            "sent": sum(each["sent"] for each in slices if each["to"] == to)}


def verdict(runs, counted, least=ATTACKS):
    """(the worst ratio, detail) of {attack: results of _beside(), by round} and what the sink has counted. `least`:
    number of attacks below which there is no verdict."""
    detail = {}
    for attack, rounds in runs.items():
        ratios = [each[DAEMON]["mbit"] / each[SINK]["mbit"] for each in rounds]
        pings = {to: percentile([took for each in rounds for took in each[to]["pings"]], 0.99) for to in (DAEMON, SINK)}
        detail[attack] = {"ratio": round(median(ratios), 3), "ratios": [round(each, 3) for each in ratios],
                          "mbit": {to: [round(each[to]["mbit"]) for each in rounds] for to in pings},
                          "ping p99 ms": {to: round(each, 1) for to, each in pings.items()},
                          "datagrams": rounds[-1][DAEMON]["sent"], "drops": rounds[-1]["drops"]}
        require(detail, pings[DAEMON] <= pings[SINK] + PATIENCE_MS,
                f"{attack}: ping p99 {pings[DAEMON]:.0f} ms instead of {pings[SINK]:.0f} ms")
        slowest = min(each[to]["attack mbit"] for each in rounds for to in pings)
        require(detail, slowest >= KEPT * MBIT, f"{attack}: {slowest:.2f} Mbit/s of {MBIT} were sent")
        require(detail, all(each["alive"] for each in rounds), f"{attack}: the session ended early")
        malformed = sorted(MALFORMED & {cause for each in rounds for cause in each["drops"]})
        require(detail, not malformed, f"{attack}: not as meant: {', '.join(malformed)}")
    sent = sum(each[SINK]["sent"] for rounds in runs.values() for each in rounds)
    require(detail, counted >= ARRIVED * sent, f"the sink counted {counted} of {sent} datagrams")
    require(detail, len(runs) >= least, f"{len(runs)} of at least {least} attacks")
    return min(detail[attack]["ratio"] for attack in runs), detail


def measure(wanted, least, rounds, seconds, attack):
    """What verdict() says of the attacks of a target, or of the only one that `attack` names."""
    names = [attack] if attack else list(read(TABLE.read_text(encoding="utf-8"), wanted))
    runs, counted = {name: [] for name in names}, []
    with Lab([Wire("wire")], sites=2) as lab:
        file = Nginx(lab).add("large", FILE_SIZE)
        lab.make_gateways(concentrator=streams(HTTP_PORT))
        for gateway in (lab.gateway, lab.edge_gateway):
            gateway.start()
        lab.edge_gateway.wait_up()
        attacker = Attacker(lab, file)
        with _sink(lab, counted):
            for turn, (place, name) in itertools.product(range(rounds), enumerate(names)):
                order = (DAEMON, SINK) if (turn + place) % 2 else (SINK, DAEMON)
                runs[name].append(_beside(lab, attacker, name, order, seconds, file))
    return verdict(runs, counted[0], least)


OPTIONS = [option("--rounds", at_least(ROUNDS), type=int, default=ROUNDS, help="of each attack"),
           option("--seconds", at_least(SECONDS), type=int, default=SECONDS, help="of each case in a round"),
           option("--attack", metavar="ID", help="only this one: a look, and no verdict")]


@target("guard.1", f"goodput of an honest peer beside {MBIT} Mbit/s of an attack of the second implementation "
        f"(tests/attacks.yaml) / beside the same datagrams sent to a counting socket, in turns, medians of {ROUNDS}: "
        f"the worst of {ATTACKS} attacks; ping p99 + at most {PATIENCE_MS} ms", "ratio", at_least=0.8,
        programs=["braidd", "braidctl"], options=OPTIONS)
def attacks(rounds, seconds, attack):
    return measure("guard.1", ATTACKS, rounds, seconds, attack)
