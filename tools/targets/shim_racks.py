"""T-RACKs' small simulation with Braid's ack shim, rerun in virtual time by braid-sim racks (evaluation/tracks.md)."""

import itertools
from statistics import mean

from lab import percentile

from . import require, target
from ._simulate import simulate

SCHEMES, SEEDS, SHIMS = ["droptail", "droprand", "red-ecn", "dctcp"], [1, 2, 3], ["off", "sender", "paper"]
CASES = {"CASE 1": [], "CASE 2": ["--large"]}
# Section V-A: the paper's ratios of the 95th percentile, without / with the shim.
PAPER = {("CASE 1", 20): "up to 15", ("CASE 1", 80): {"droptail": 3, "droprand": 3, "red-ecn": 8, "dctcp": 8},
         ("CASE 2", 20): {"droptail": 1.6, "droprand": 1.9, "red-ecn": 14, "dctcp": 14},
         ("CASE 2", 80): {"droptail": 14, "droprand": 1.5, "red-ecn": 1.4, "dctcp": 37}}
VARIANTS = {"jitter of 12 us": ["--jitter", 12], "SYNs in the round": ["--setup", "handshake"]}


def _p95(values):
    return percentile(values, 0.95)


def _ms(values):
    return round(_p95(values) * 1000, 1)


def rounds_of_all():
    """{(case, flows, scheme, shim): what of all seeds is needed}, flows pooled."""
    keys = [(case, flows, scheme, shim) for case in CASES for flows in (20, 80) for scheme in SCHEMES
            for shim in SHIMS]
    runs = {(*key, seed): ["incast", "--flows", key[1], "--scheme", key[2], "--shim", key[3], "--seed", seed,
                           *CASES[key[0]]]
            for key in keys for seed in SEEDS}
    extra = {(case, 20, name, shim): ["incast", *arguments, "--shim", shim, *CASES[case]]
             for case in CASES for name, arguments in VARIANTS.items() for shim in SHIMS}
    extra |= {(case, 20, "droptail", shim): ["incast", "--shim", shim, *CASES[case]] for case in CASES
              for shim in ("both", "cache")}
    runs |= {(*key, seed): [*arguments, "--seed", seed] for key, arguments in extra.items() for seed in SEEDS}
    done = simulate("braid-sim racks", runs)
    return {key: [done[*key, seed] for seed in SEEDS] for key in [*keys, *extra]}


def _ratio(off, each):
    """The p95 without / with, flows of all seeds pooled."""
    return _p95([t for run in off for t in run["times"]]) / _p95([t for run in each for t in run["times"]])


def _show(off, each):
    """The effect of one shim, compared with none."""
    pooled = [[t for run in runs for t in run["times"]] for runs in (off, each)]
    by_source = [[t for run in runs for t in run["means"]] for runs in (off, each)]
    return {"p95 ratio": round(_ratio(off, each), 2), "p95_ms": [_ms(times) for times in pooled],
            "ratio of the mean": round(mean(pooled[0]) / mean(pooled[1]), 2),
            "p95 ratio of the sources' means (the paper's CDFs)": round(_p95(by_source[0]) / _p95(by_source[1]), 2),
            "p95 ratio by seed": [round(_p95(a["times"]) / _p95(b["times"]), 2) for a, b in zip(off, each)],
            "timeouts": [sum(run["timeouts"] for run in runs) for runs in (off, each)],
            "segments that came twice": [sum(run["repeats"] for run in runs) for runs in (off, each)],
            "large_mbit": [round(mean(run["large_mbit"] for run in runs)) for runs in (off, each)],
            "incomplete": [sum(run["incomplete"] for run in runs) for runs in (off, each)]}


@target("shim.4", "T-RACKs section V-A, 20 flows at one port: smallest ratio of the p95 FCT without the shim to that "
        "with it on the senders, CASE 1 and 2, four queues, 3 seeds", "ratio", at_least=10, programs=["braid-sim"])
def racks():
    runs = rounds_of_all()

    def table(case, flows, names, shim):
        return {name: _show(runs[case, flows, name, "off"], runs[case, flows, name, shim]) for name in names}

    full = {case: {flows: table(case, flows, SCHEMES, "sender") for flows in (20, 80)} for case in CASES}
    smallest = {flows: min(_ratio(runs[case, flows, scheme, "off"], runs[case, flows, scheme, "sender"])
                           for case in CASES for scheme in SCHEMES) for flows in (20, 80)}
    detail = {"smallest p95 ratio of 80 flows (bound 3)": round(smallest[80], 2), "met at 80": smallest[80] >= 3}
    for case in CASES:
        for flows in (20, 80):
            paper = table(case, flows, SCHEMES, "paper")
            detail[f"{case}, {flows} flows"] = {
                "paper's ratio": PAPER[case, flows], "shim": full[case][flows],
                "the paper's duplicate ACKs alone: p95 ratio": {name: paper[name]["p95 ratio"] for name in SCHEMES},
                "the paper's duplicate ACKs alone: timeouts": {name: paper[name]["timeouts"][1] for name in SCHEMES}}
        detail[f"{case}, 20 flows, droptail, p95 ratio"] = {
            **{f"{name}, {shim}": table(case, 20, [name], shim)[name]["p95 ratio"] for name in VARIANTS
               for shim in ("sender", "paper")},
            **{f"shim: {shim}": table(case, 20, ["droptail"], shim)["droptail"]["p95 ratio"]
               for shim in ("both", "cache")}}
    for case, scheme in itertools.product(CASES, SCHEMES):
        for shim in ("off", "sender"):
            unfinished = sum(run["incomplete"] for run in runs[case, 20, scheme, shim])
            require(detail, not unfinished, f"{case}, {scheme}, shim {shim}: {unfinished} flows did not end")
    return smallest[20], detail
