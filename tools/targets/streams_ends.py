"""Targets of the stream lane: how streams end, the memory they hold, and their effect on other
traffic."""

import contextlib
import json
import math
import os
import pathlib
import re
import resource
import socket
import subprocess
import threading
import time

from lab import Lab, binary, median, percentile
from lab.ends import GOOD, PATIENCE, REFUSED
from lab.measure import iperf3, resident_bytes, round_trips
from lab.netns import run
from lab.services import Iperf3

from . import option, require, target
from ._duel import rounded
from ._simulate import simulate
from .order import CALL_SECONDS, KEPT, LINKS, MOST_LOST, QUICK, ROUNDS, TAIL, TOOLS, call_beside
from .pair import PROGRAMS
from .streams import IPERF_PORT, streams, wait_taking

ADDRESS, PORT = Lab.server_addresses()[0], 8080
FAST = {"new-streams-per-peer": 100_000}  # all connections must become streams, at any rate

# ---- stream.4

RUNS, CONNECTIONS, AT_ONCE = 10_000, 100_000, 200
QUICK_RUNS, QUICK_CONNECTIONS = 20, 2_000
# Several client addresses, because a host has 28,000 ports and each may be in TIME_WAIT for a minute.
SOURCES = [f"192.168.10.{host}" for host in range(3, 11)]


def _virtual(runs):
    """{what sim_streams counts} of so many runs, in two halves at once."""
    half = runs // 2
    done = simulate("sim_streams", {seed: ["--runs", half, "--seed", seed] for seed in (1, 1 + half)}, check=False)
    return {key: sum(each[key] for each in done.values()) for key in
            ("runs", "failed", "streams", "whole", "reset", "half_closed", "stalled", "troubled")}


def _real(count):
    """{"client" and "server": {kind: {outcome: connections}}} and how many were in the stream lane, of connections
    over WiFi and LTE."""
    with Lab(LINKS) as lab:
        settings = {"streams": streams(f"{PORT}-{PORT + 1}")["streams"] | FAST}
        lab.start_gateways(settings, settings)
        wait_taking(lab)
        for source in SOURCES:
            lab.client.ip("address", "add", f"{source}/24", "dev", "lan0")
        results, program = {}, ["env", f"PYTHONPATH={TOOLS}", "python3", "-m", "lab.ends"]
        with contextlib.ExitStack() as files:
            out = {role: files.enter_context(open(lab.directory / f"{role}.json", "wb"))
                   for role in ("client", "server")}
            server = lab.start(lab.server, "server", [*program, "serve", ADDRESS, PORT], stdout=out["server"])
            lab.wait_for(lambda: (lab.directory / "server.json").read_bytes(), "the server to be ready")
            client = lab.start(lab.client, "client", [
                *program, "ask", ADDRESS, PORT, "--count", count, "--at-once", AT_ONCE, "--source", *SOURCES],
                stdout=out["client"])
            if client.wait(count / 20 + 120) != 0:
                raise RuntimeError(lab.log_tail("client"))
            if lab.stop(server, timeout=2 * PATIENCE + 30) != 0:
                raise RuntimeError(lab.log_tail("server"))
        for role in out:
            results[role] = json.loads((lab.directory / f"{role}.json").read_text(encoding="ascii").splitlines()[-1])
        return results, lab.edge_gateway.status()["streams"]["accepted"]


@target("stream.4", f"streams that lose or change bytes, end otherwise than their TCP did or hang, over {RUNS:,} "
        f"virtual runs and {CONNECTIONS:,} real connections with every kind of end over WiFi and LTE", "failures",
        at_most=0, programs=[*PROGRAMS, "sim_streams"],
        options=[QUICK, option("--no-virtual", action="store_true", help="the real connections alone"),
                 option("--no-real", action="store_true", help="the virtual runs alone")])
def ends(quick, no_virtual, no_real):
    detail, failures = {}, 0
    if not no_virtual:
        detail["virtual"] = _virtual(QUICK_RUNS if quick else RUNS)
        failures += detail["virtual"]["failed"]
    if not no_real:
        count = QUICK_CONNECTIONS if quick else CONNECTIONS
        detail["real"], detail["in the stream lane"] = _real(count)
        bad = {role: sum(number for outcomes in kinds.values() for outcome, number in outcomes.items()
                         if outcome != GOOD) for role, kinds in detail["real"].items()}
        detail["ended otherwise at"] = bad
        failures += max(bad.values())
        came, asked = ({kind: sum(outcomes.values()) for kind, outcomes in detail["real"][role].items()
                        if kind != REFUSED} for role in ("server", "client"))
        require(detail, came == asked, f"the end of every connection at the server: {came} of {asked}")
        require(detail, detail["in the stream lane"] == count,
                f"{detail['in the stream lane']} of {count} connections were in the stream lane")
    return failures, detail


# ---- stream.5

IDLE, QUICK_IDLE, SETTLE = 10_000, 500, 5  # streams, and seconds until they are idle
READERS, HELD, FILLING = 1_000, 32 << 20, 20  # streams that are not read, the limit in bytes, and seconds to fill it
BLOCK = bytes(1 << 18)
# Only this part of the resident memory: pages of code may be evicted meanwhile, which would hide the streams' memory
OWN = "RssAnon"
# A separate process, with its own limit of open files.
KEEPER = f"""
import socket
with socket.create_server(("{ADDRESS}", {PORT}), backlog=4096) as listener:
    print("ready", flush=True)
    ends = []
    while True:
        ends.append(listener.accept()[0])
        ends[-1].sendall(b".")
"""


@contextlib.contextmanager
def _files(count):
    """Raises the limit of open files for this process and the processes it starts meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = before[1]
    if most != resource.RLIM_INFINITY and most < count:
        raise RuntimeError(f"{count} open files are needed, and {most} allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def _connections(lab, count):
    """The clients' ends of `count` connections. Each has carried one byte, and no server reads."""
    name = f"keeper{count}"  # a log of its own: the one before has said that it is ready
    server = lab.start(lab.server, name, ["python3", "-c", KEEPER])
    lab.wait_for_line(name, "ready")
    try:
        with contextlib.ExitStack() as ends:
            clients = [ends.enter_context(lab.client.inside(socket.create_connection, (ADDRESS, PORT), 30))
                       for _ in range(count)]
            for client in clients:
                if client.recv(1) != b".":
                    raise RuntimeError("a connection ended")
            yield clients
    finally:
        lab.stop(server)


def _held(gateway):
    """Bytes that a gateway holds for the streams of its one peer."""
    return gateway.status()["peers"][0]["streams_held_bytes"]


def _most_held(lab, clients):
    """{gateway: largest number of bytes held} while all clients write and no server reads."""
    most, end = dict.fromkeys(("edge", "concentrator"), 0), time.monotonic() + FILLING
    for client in clients:
        client.setblocking(False)
    while time.monotonic() < end:
        for client in clients:
            with contextlib.suppress(BlockingIOError):
                client.send(BLOCK)
        for name, gateway in (("edge", lab.edge_gateway), ("concentrator", lab.gateway)):
            most[name] = max(most[name], _held(gateway))
    return most


@target("stream.5", f"memory of an idle stream, of {IDLE:,}, the larger of both daemons; bytes held for {READERS:,} "
        "readers that do not read / the configured bound at most 1", "bytes", at_most=6_000, programs=PROGRAMS,
        options=[QUICK])
def memory(quick):
    count, readers = (QUICK_IDLE, QUICK_IDLE // 5) if quick else (IDLE, READERS)
    limits = {"peer-receive-limit": f"{HELD >> 20}MiB", "max-streams-per-peer": 2 * count} | FAST
    settings = [{"streams": streams(PORT)["streams"] | limits} for _ in range(2)]
    detail = {"idle streams": count, "readers": readers, "bound": HELD}
    with _files(2 * count), Lab([LINKS[0]]) as lab:
        lab.start_gateways(*settings)
        wait_taking(lab)
        with _connections(lab, 10):
            time.sleep(1)  # what the first ones need once
        time.sleep(1)
        before = [resident_bytes(gateway.process.pid, OWN) for gateway in lab.gateways()]
        with _connections(lab, count):
            time.sleep(SETTLE)
            taken = lab.edge_gateway.status()["peers"][0]["stream_count"]
            grown = [resident_bytes(gateway.process.pid, OWN) - size
                     for gateway, size in zip(lab.gateways(), before)]
        detail |= {"in the stream lane": taken, "bytes of an idle stream": [rounded(each / count) for each in grown]}
        require(detail, taken == count, f"{taken} of {count} connections were in the stream lane")
    with _files(2 * count), Lab([LINKS[0]]) as lab:
        lab.start_gateways(*settings)
        wait_taking(lab)
        with _connections(lab, readers) as clients:
            most = _most_held(lab, clients)
        share = max(most.values()) / HELD
        detail |= {"held at most": most, "of the bound": rounded(share)}
        require(detail, 0.1 < share <= 1, f"{share:.3f} of the bound was held; more than 0.1 and at most 1 must be")
    return max(grown) / count, detail


# ---- stream.6

DOWNLOADS, PINGS, QUICK_PINGS, PAUSE, LATEST = 10, 1000, 200, 0.02, 1  # `LATEST`: seconds; a later answer is none


def _beside_downloads(count):
    """(idle, busy): milliseconds of pings alone and beside downloads in the stream lane."""
    with Lab(LINKS) as lab:
        lab.start_gateways(streams(IPERF_PORT), streams(IPERF_PORT))
        wait_taking(lab)
        Iperf3(lab)
        idle = round_trips(lab.client, ADDRESS, count, PAUSE, LATEST)
        result = {}

        def download():
            result.update(iperf3(lab, ADDRESS, "-R", "-P", DOWNLOADS, seconds=round(count * PAUSE) + 4)["end"])

        load = threading.Thread(target=download, daemon=True)
        load.start()
        time.sleep(2)
        busy = round_trips(lab.client, ADDRESS, count, PAUSE, LATEST)
        load.join()
        taken = lab.edge_gateway.status()["streams"]["accepted"]
        if taken < DOWNLOADS:
            raise RuntimeError(f"{taken} connections were in the stream lane")
        idle99, busy99 = (min(percentile(times, 0.99), LATEST * 1e3) for times in (idle, busy))
        if idle99 >= LATEST * 1e3:
            raise RuntimeError(f"{idle.count(math.inf)} of {count} pings had no answer when idle")
        return {"idle p99 ms": idle99, "p99 ms": busy99, "above ms": busy99 - idle99,
                "Mbit/s": rounded(result["sum_received"]["bits_per_second"] / 1e6)}


@target("stream.6", f"p99 of a ping beside {DOWNLOADS} downloads in the stream lane above idle, WiFi + LTE, median of "
        f"3; a call of five minutes beside as many loses at most {MOST_LOST}, its p99 is at most {TAIL} ms above idle "
        f"and the downloads keep {KEPT}", "ms", at_most=15, programs=PROGRAMS,
        options=[QUICK, option("--no-call", action="store_true", help="without the call")])
def neighbours(quick, no_call):
    runs = [_beside_downloads(QUICK_PINGS if quick else PINGS) for _ in range(1 if quick else ROUNDS)]
    detail = {"runs": runs, "pings of a run": QUICK_PINGS if quick else PINGS}
    if not no_call:
        one = call_beside(json.dumps(streams(IPERF_PORT)), 10 if quick else CALL_SECONDS, DOWNLOADS)
        detail["call"] = one
        require(detail, one["lost"] <= MOST_LOST, f"the call loses {one['lost']}, at most {MOST_LOST} may be")
        require(detail, one["above ms"] <= TAIL, f"the call's p99 is {one['above ms']:.1f} ms above idle")
        require(detail, one["kept"] >= KEPT, f"the downloads keep {one['kept']:.3f}")
    return median(run["above ms"] for run in runs), detail


# ---- stream.8

PROGRAMS_TEST = TOOLS.parent / "tests/e2e/programs_test.py"


@target("stream.8", "pages of 100 objects, by HTTP/1.1 and by HTTP/2, that headless Chromium does not load whole "
        "through streams", "failures", at_most=0, programs=PROGRAMS)
def browser():
    run(TOOLS.parent / "scripts/deps", "browser", timeout=600)
    paths = {"BRAID_BIN": str(pathlib.Path(binary("braidd")).parent), "PYTHONPATH": str(TOOLS)}
    done = subprocess.run(["python3", PROGRAMS_TEST, "Web.test_a_browser"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=300, env={**os.environ, **paths})
    failed = len(re.findall(r"^(?:FAIL|ERROR): ", done.stdout, re.MULTILINE))
    passed = re.search(r"^Ran 1 test .*\n\nOK$", done.stdout, re.MULTILINE) is not None
    return failed or int(not passed), {"said": done.stdout.strip().splitlines()[-1]}
