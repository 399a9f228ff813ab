"""Target of `streams.connect`: what `first` costs beyond `early`, and what a client is told of servers that are not
there."""

import errno
import itertools
import json
import time

from lab import Lab, Link, Wire, binary, median, percentile
from lab.measure import thread_nanoseconds
from lab.requests import ask, connect

from . import require, target
from ._duel import rounded
from .order import QUICK, ROUNDS, TOOLS
from .pair import PROGRAMS
from .streams import wait_taking

WAYS = ("early", "first", "packets")
ROUND_TRIP = 0.02  # of the faster link, in seconds
LINKS = [Link("wifi", 50, ROUND_TRIP * 1000), Link("lte", 30, 60)]
WEB_PORT, CLOSED_PORT, SILENT_PORT = 8080, 8081, 8082
SERVER, NOBODY = Lab.server_addresses()[0], "192.168.100.77"
REQUESTS, QUICK_REQUESTS, ANSWER = 300, 60, 1000  # cold connections of a run; bytes
CONNECTIONS, QUICK_CONNECTIONS, AT_ONCE = 10_000, 2_000, 200  # of a burst


def _settings(way):
    """`streams` of both gateways."""
    if way == "packets":
        return {"enabled": "off"}
    return {"enabled": "on", "connect": way, "match": [{"ports": "8080-8089"}], "new-streams-per-peer": 100_000}


def _set(lab, way):
    """Restarts both gateways with this way of connecting."""
    for gateway in lab.gateways():
        gateway.config["streams"] = _settings(way)
        gateway.restart()
    lab.edge_gateway.wait_up(subflows=len(lab.sites[0].links))
    if way != "packets":
        wait_taking(lab)


def _request(room):
    """(seconds until connect() returns, seconds until the first byte of the answer)."""
    began = time.monotonic()
    with connect(SERVER, WEB_PORT) as handle:
        connected = time.monotonic() - began
        ask(handle, ANSWER, room)
        return connected, time.monotonic() - began


def _requests(lab, count):
    """Milliseconds of cold connections, one after the other, each with an answer that is one segment."""
    room = bytearray(ANSWER)
    for host in (lab.client, lab.server):
        host.ip("tcp_metrics", "flush", "all")  # what the kernels remember of each other
    done = [lab.client.inside(_request, room) for _ in range(count)]
    return {f"{name} {key} ms": rounded(percentile(times, share) * 1e3)
            for name, times in zip(("connect", "first byte"), zip(*done))
            for key, share in (("p50", 0.5), ("p99", 0.99))}


def _fate(address, port):
    """How connect() ends, and its milliseconds."""
    began = time.monotonic()
    try:
        with connect(address, port):
            how = "accepted"
    except TimeoutError:
        how = "timeout"
    except OSError as error:
        how = errno.errorcode.get(error.errno, str(error))
    return {"how": how, "ms": rounded((time.monotonic() - began) * 1e3)}


def _truth(lab):
    """What a client is told of servers that are not there."""
    dead = {"closed port": (SERVER, CLOSED_PORT), "silent host": (SERVER, SILENT_PORT),
            "no host": (NOBODY, WEB_PORT)}
    return {name: lab.client.inside(_fate, *end) for name, end in dead.items()}


def _latency(rounds, count):
    """[{way: times of requests}], and {way: what a client is told}."""
    runs, told = [], {}
    with Lab(LINKS) as lab:
        lab.start_gateways({"streams": _settings("early")}, {"streams": _settings("early")})
        lab.start(lab.server, "requests",
                  ["env", f"PYTHONPATH={TOOLS}", "python3", "-m", "lab.requests", SERVER, WEB_PORT])
        lab.wait_for_line("requests", "ready")
        lab.server.run("nft", "add table ip stop; add chain ip stop in { type filter hook input priority 0; }; "
                       f"add rule ip stop in tcp dport {SILENT_PORT} drop")
        for number in range(rounds):
            run = {}
            for way in WAYS[::-1 if number % 2 else 1]:
                _set(lab, way)
                run[way] = _requests(lab, count)
                if way not in told:
                    told[way] = _truth(lab)
            runs.append(run)
    return runs, told


def _bursts(rounds, count):
    """{way: [connections a second, and microseconds of CPU of each daemon for one]}."""
    results = {way: [] for way in ("early", "first")}
    with Lab([Wire("wire")]) as lab:
        lab.start_gateways({"streams": _settings("early")}, {"streams": _settings("early")})
        lab.start(lab.server, "server", [binary("burst"), "serve", f"0.0.0.0:{WEB_PORT}"])
        lab.wait_for_line("server", "ready")
        for number, way in itertools.product(range(rounds), results):
            _set(lab, way)
            before = [sum(thread_nanoseconds(gateway.process.pid).values()) for gateway in lab.gateways()]
            done = json.loads(lab.client.run(binary("burst"), "ask", f"{SERVER}:{WEB_PORT}", "--count", count,
                                             "--at-once", AT_ONCE, timeout=240))
            spent = [sum(thread_nanoseconds(gateway.process.pid).values()) - began
                     for gateway, began in zip(lab.gateways(), before)]
            taken = lab.edge_gateway.status()["streams"]["accepted"]
            if done["good"] != count:
                raise RuntimeError(f"{way}: {done}")
            results[way].append({"connections a second": rounded(done["rate"]), "in the stream lane": taken}
                                | {f"us of CPU, {gateway.name}": rounded(each / count / 1e3)
                                   for gateway, each in zip(lab.gateways(), spent)})
    return results


@target("router.6", "short requests on cold connections over WiFi (50 Mbit/s, 20 ms) + LTE (30 Mbit/s, 60 ms): time to "
        "the first byte with `streams.connect: first` beyond that with `early`, in round trips of the faster path, "
        "median of 3 in turns; with `first` a client is told of a closed port, a silent host and a missing one what it "
        "is told without streams", "round trips", at_most=1.3, programs=[*PROGRAMS, "burst"], options=[QUICK])
def first(quick):
    rounds, requests, connections = ((1, QUICK_REQUESTS, QUICK_CONNECTIONS) if quick else
                                     (ROUNDS, REQUESTS, CONNECTIONS))
    runs, told = _latency(rounds, requests)
    detail = {"requests of a run": requests, "runs": runs, "what a client is told": told,
              "bursts": _bursts(rounds, connections), "connections of a burst": connections}
    for name, without in told["packets"].items():
        require(detail, told["first"][name]["how"] == without["how"],
                f"{name}: {told['first'][name]['how']} instead of {without['how']}")
    return median((run["first"]["first byte p50 ms"] - run["early"]["first byte p50 ms"]) / (ROUND_TRIP * 1e3)
                  for run in runs), detail
