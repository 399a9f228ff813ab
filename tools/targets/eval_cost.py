"""The speed of the large simulated network on one CPU, which mostly depends on the core."""

import statistics

from . import target
from ._simulate import simulate

SETTING = ["permutation", "--controller", "amp", "-k", "8", "--time", "20", "--warm-up", "5", "--cpu"]
RUNS = 5


def _rates(program):
    """Data packets per second of CPU time for each run; one program at a time."""
    return [run["packets_per_cpu_second"]
            for run in (simulate(program, {"run": SETTING})["run"] for _ in range(RUNS))]


def _told(rates):
    return round(statistics.median(rates)), {"runs": [round(rate) for rate in rates]}


@target("eval.3", "data packets a second of one processor in a fat tree of 128 hosts, each with the whole core, keys "
        f"and frames as shipped; median of {RUNS}", "packets/s", at_least=100_000, programs=["braid-sim"])
def as_shipped():
    return _told(_rates("braid-sim fabric"))


@target("eval.3b", "the same with an AEAD that copies and checks nothing", "packets/s", at_least=300_000,
        programs=["braid-sim-null"])
def without_cipher():
    return _told(_rates("braid-sim-null fabric"))
