"""Target of a peer that opens streams endlessly: the service that an honest peer of the same gateway still gets, on
real kernels."""

import concurrent.futures
import contextlib
import json
import os
import subprocess

from lab import Lab, Wire, binary, median, percentile
from lab.gateway import PORT
from lab.measure import cpu_seconds, iperf3, round_trips
from lab.services import Iperf3
from lab.site import PUBLIC

from . import at_least, option, require, target
from .streams import streams

ROUNDS, SECONDS, MBIT = 7, 8, 5
KINDS = ("noise", "openings")
KEPT = 0.9  # share of its rate at which the attacker must have sent
PAUSE, LATEST = 0.02, 2  # seconds between two pings; a later answer counts as missing
SERVER = Lab.server_addresses()[0]
CLOSED_PORT, WEB_PORT = 81, 80  # ports: streams are opened to the first one, at which the host refuses connections


@contextlib.contextmanager
def _apart():
    """The CPU reserved for the hub; this process and its children use the others."""
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        raise RuntimeError("the hub needs a processor of its own, and there is one in all")
    os.sched_setaffinity(0, every[:-1])
    try:
        yield every[-1]
    finally:
        os.sched_setaffinity(0, every)


def _attack(lab, kind, seconds, mbit):
    """The attacker: a program with the key of the second site's edge, whose daemon does not run."""
    site = lab.sites[1]
    identity = [str(lab.directory / f"edge1.{suffix}") for suffix in ("key", "crt")]
    return site.edge.popen(
        binary("openings"), "--to", f"{PUBLIC[0]}:{PORT}", "--pin", lab.edge_gateway.config["peers"][0]["pin"],
        "--key", identity[0], "--certificate", identity[1], "--source", site.client_address[0],
        "--destination", f"{SERVER}:{CLOSED_PORT}", "--mbit", str(mbit), "--seconds", str(seconds),
        *(["--noise"] if kind == "noise" else []), stdout=subprocess.PIPE, text=True)


def _beside(lab, kind, seconds, mbit):
    """The service of the honest peer beside an attack, and the result of the attack."""
    hub = lab.gateway
    before, processor = hub.status()["streams"]["connected"], cpu_seconds(hub.process.pid)
    attack = _attack(lab, kind, seconds + 1, mbit)
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            download = pool.submit(iperf3, lab, SERVER, "-R", seconds=seconds)
            pings = round_trips(lab.client, SERVER, round(seconds / PAUSE * 0.8), PAUSE, LATEST)
            received = download.result()["end"]["sum_received"]
        out, _ = attack.communicate(timeout=seconds + 30)
    finally:
        attack.kill()
        attack.wait()
    if attack.returncode != 0:
        raise RuntimeError(f"openings ended with {attack.returncode}")
    status, report = hub.status(), json.loads(out)
    peer = next(peer for peer in status["peers"] if peer["name"] == "edge1")
    return {"mbit": received["bits_per_second"] / 1e6, "ping p99 ms": min(percentile(pings, 0.99), LATEST * 1e3),
            "hub's processor": (cpu_seconds(hub.process.pid) - processor) / (seconds + 1),
            "attack mbit": report["mbit"], "offered": report["openings"], "session closed": report["closed"],
            "refused": peer.get("streams_rejected"), "resets by code": report["resets"],
            "connected": status["streams"]["connected"] - before}


def verdict(runs, mbit):
    """(ratio, detail) of {kind: results of _beside()}."""
    detail = {kind: {key: [round(each[key], 3) if isinstance(each[key], float) else each[key] for each in runs[kind]]
                     for key in runs[kind][0]} for kind in runs}
    detail["ping p99 ms, medians"] = {kind: median(each["ping p99 ms"] for each in runs[kind]) for kind in runs}
    for kind in runs:
        slowest = min(each["attack mbit"] for each in runs[kind])
        require(detail, slowest >= KEPT * mbit, f"{kind}: {slowest:.2f} Mbit/s of {mbit} were sent")
        require(detail, not any(each["session closed"] for each in runs[kind]), f"{kind}: the session was closed")
    require(detail, all(each["connected"] > 0 for each in runs["openings"]), "openings: none became a connection")
    require(detail, not any(each["offered"] or each["connected"] for each in runs["noise"]), "noise: had openings")
    goodputs = {kind: median(each["mbit"] for each in runs[kind]) for kind in runs}
    return goodputs["openings"] / goodputs["noise"], detail


@target("aid.2", f"goodput of an honest peer beside {MBIT} Mbit/s of openings of streams by another peer / beside the "
        f"same datagrams without openings, the hub with a processor of its own: medians of {ROUNDS} in turns", "ratio",
        at_least=0.9, programs=["braidd", "braidctl", "openings"],
        options=[option("--rounds", at_least(ROUNDS), type=int, default=ROUNDS, help="of each kind"),
                 option("--seconds", at_least(SECONDS), type=int, default=SECONDS, help="of a run"),
                 option("--mbit", type=float, default=float(MBIT), help="of the attack")])
def openings(rounds, seconds, mbit):
    runs = {kind: [] for kind in KINDS}
    with _apart() as processor, Lab([Wire("wire")], sites=2) as lab:
        Iperf3(lab)
        lab.make_gateways(edge=streams(WEB_PORT), concentrator=streams(WEB_PORT))
        lab.gateway.wrapper = ["taskset", "--cpu-list", processor]
        for gateway in (lab.gateway, lab.edge_gateway):
            gateway.start()
        lab.edge_gateway.wait_up()
        for number in range(rounds):
            for kind in KINDS[::-1 if number % 2 else 1]:
                runs[kind].append(_beside(lab, kind, seconds, mbit))
    return verdict(runs, mbit)
