"""The target of slow paths that are full in both directions, in virtual time by braid-sim rate."""

from statistics import mean

from . import require, target
from ._simulate import simulate

PROGRAMS = ["braid-sim"]
SEEDS = range(1, 11)
LOADS = ["both", "rival", "stranger"]
LEAST_GOODPUT, SHARES, LEAST_FORWARD = 0.9, (0.35, 0.6), 0.95
QUEUES = ("fast down", "fast up", "slow down", "slow up")


def _spread(values, digits=3):
    """Smallest, mean and largest."""
    return [round(value, digits) for value in (min(values), mean(values), max(values))]


def judge_two_way(runs):
    """(value, detail) of the runs {(load, seed): figures}."""
    def of(load, figure):
        return [figure(run) for (name, _), run in runs.items() if name == load]

    queues = {queue: of("both", lambda run, queue=queue: run["links"][queue]["p95_ms"]) for queue in QUEUES}
    goodputs = of("both", lambda run: min(run["down_share"], run["up_share"]))
    shares = of("rival", lambda run: run["share"])
    forward = of("stranger", lambda run: run["down_share"])
    detail = {"p95_ms of the queues": {name: _spread(values, 1) for name, values in queues.items()},
              "goodput, the lesser direction": _spread(goodputs), "share beside CUBIC": _spread(shares),
              "goodput, reverse path full": _spread(forward)}
    require(detail, min(goodputs) >= LEAST_GOODPUT, f"goodput {min(goodputs):.2f}, at least {LEAST_GOODPUT} is due")
    require(detail, SHARES[0] <= min(shares) and max(shares) <= SHARES[1],
            f"a share of {min(shares):.2f} to {max(shares):.2f} beside CUBIC, {SHARES[0]} to {SHARES[1]} is due")
    require(detail, min(forward) >= LEAST_FORWARD,
            f"goodput {min(forward):.2f} with a full reverse path, at least {LEAST_FORWARD} is due")
    return max(max(values) for values in queues.values()), detail


@target("transport.2", "0.8 + 0.4 Mbit/s, both full both ways for 60 s, buffers of a second: p95 of the one-way "
        f"queues, the worst of ten seeds; goodput of both directions >= {LEAST_GOODPUT} of what full datagrams carry; "
        f"beside a CUBIC flow on each path a share of {SHARES[0]} to {SHARES[1]}; forward goodput >= {LEAST_FORWARD} "
        "while only the reverse paths are full of CUBIC", "ms", at_most=80, programs=PROGRAMS)
def two_way():
    return judge_two_way(simulate("braid-sim rate", {(load, seed): ["two-way", "--load", load, "--seed", seed]
                                                     for load in LOADS for seed in SEEDS}))
