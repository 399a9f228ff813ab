"""Target of a data centre fabric: short flows over three paths, one of which loses packets, compared with a loss-free
path without Braid."""

import copy
import json
import math
import random
import sys
import time

from lab import Lab, Link, median, percentile
from lab.gateway import merge
from lab.machine import wait_for_calm
from lab.measure import cpu_seconds, iperf3, round_trips
from lab.requests import MOST, ask, connect
from lab.services import Iperf3

from . import require, target
from ._duel import DIRECT, OPTIONS, PROGRAMS, ROUNDS, SERVER, rounded

# A port of a switch: as in the fabric of evaluation/amp.md.
PORT = {"queue_bytes": 128 * 1024, "ecn_threshold_bytes": 32 * 1024}
LINKS = [Link("path1", 1000, 0.3, more=PORT), Link("path2", 1000, 0.3, more=PORT),
         Link("path3", 1000, 0.3, 0.01, more=PORT)]
# The settings of conf/rack.yaml for a fabric.
RACK = {"tunnel": {"codel-target": "500us", "codel-interval": "10ms", "reorder-timeout": "20ms",
                   "delivery-timeout": "500ms"}}
SMALLEST, LARGEST = 10_000, 100_000  # bytes of a flow
CONNECTIONS = 8  # persistent connections, used one after the other
FLOWS, QUICK_FLOWS = 3000, 200  # of one run
LISTEN = 7300
MOST_MEDIAN = 1.3


class _Client:
    """Flows over connections that were made beforehand, one after the other."""

    def __init__(self, lab, address, seed):
        self._connections = [lab.client.inside(connect, address, LISTEN) for _ in range(CONNECTIONS)]
        self._sizes = random.Random(seed)
        self._room = bytearray(MOST)

    def run(self, count):
        """Seconds of each of `count` flows."""
        return [ask(self._connections[number % CONNECTIONS], self._sizes.randint(SMALLEST, LARGEST), self._room)
                for number in range(count)]

    def close(self):
        for handle in self._connections:
            handle.close()


def _brief(times):
    return {f"p{share * 100:g} ms": percentile(times, share) * 1e3 for share in (0.5, 0.99)}


def _run(lab, address, seed, flows):
    """Percentiles of the completion times of one run, and how much of a CPU the emulator used meanwhile."""
    wait_for_calm()
    client = _Client(lab, address, seed)
    client.run(flows // 10)  # warm: windows have grown
    began, emulator = time.monotonic(), cpu_seconds(lab.links.process.pid)
    times = client.run(flows)
    client.close()
    used = (cpu_seconds(lab.links.process.pid) - emulator) / (time.monotonic() - began)
    return {**_brief(times), "CPUs of the emulator": used}


def _emulator(lab, seconds):
    """The capacity of the emulated path itself: one TCP stream, and pings, over the first path without Braid."""
    Iperf3(lab)
    pings = round_trips(lab.client, DIRECT, 100, 0.02)
    before = cpu_seconds(lab.links.process.pid)
    got = iperf3(lab, DIRECT, seconds=seconds)["end"]["sum_received"]
    return {"Gbit/s of one TCP stream": rounded(got["bits_per_second"] / 1e9),
            "CPUs meanwhile": rounded((cpu_seconds(lab.links.process.pid) - before) / seconds),
            "median ping ms": median(pings), "p99 ping ms": percentile(pings, 0.99)}


@target("speed.6", "flows of 10 to 100 KB on connections that stay, over three paths of 1 Gbit/s and 0.3 ms, one "
        "with 1 % loss: p99 of the completion time / that of a path without loss alone and without Braid, median of "
        f"runs in turns; the median's quotient at most {MOST_MEDIAN}", "ratio", at_most=1.5,
        programs=[*PROGRAMS, "linkemu"], options=OPTIONS)
def fabric(quick, settings):
    rounds, flows = (1, QUICK_FLOWS) if quick else (ROUNDS, FLOWS)
    changes = merge(copy.deepcopy(RACK), json.loads(settings))
    results = {"braid": [], "one path": []}
    with Lab(LINKS, offloads=True) as lab:
        lab.start_gateways(edge=changes, concentrator=changes)
        lab.start(lab.server, "requests", [sys.executable, "-m", "lab.requests", "0.0.0.0", LISTEN])
        lab.wait_for_line("requests", "ready")
        emulator = _emulator(lab, 2 if quick else 5)
        for number in range(rounds):
            for name, address in (("braid", SERVER), ("one path", DIRECT))[::-1 if number % 2 else 1]:
                results[name].append(_run(lab, address, number, flows))
        unfit = sum(link[way]["no_buffer"] for link in lab.links.stats()["links"].values() for way in ("ab", "ba"))
    quotients = {key: [a[key] / b[key] for a, b in zip(results["braid"], results["one path"])]
                 for key in ("p50 ms", "p99 ms")}
    value, middle = median(quotients["p99 ms"]), median(quotients["p50 ms"])
    detail = {"rounds": rounds, "flows of a run": flows, "median's quotient": rounded(middle),
              "emulator": {**emulator, "packets without a buffer": unfit},
              **{name: {key: rounded(median(each[key] for each in runs)) for key in runs[0]}
                 for name, runs in results.items()}}
    require(detail, middle <= MOST_MEDIAN, f"the median is {middle:.2f} times that of one path, "
                                           f"at most {MOST_MEDIAN} may be")
    require(detail, math.isfinite(emulator["p99 ping ms"]) and not unfit, "an emulator that keeps up")
    return value, detail
