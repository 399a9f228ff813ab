"""Targets of AMP: its figures rerun in virtual time by braid-sim rate (evaluation/amp.md)."""

from statistics import mean, median

from . import require, target
from ._simulate import by_seed, require_complete, simulate

PROGRAMS = ["braid-sim"]
RIVALS = ["amp", "dcm", "xmp"]
TCP_RTO = ["--min-rto", "200"]


def _simulate(runs):
    return simulate("braid-sim rate", runs)


def _ms(seconds):
    return round(seconds * 1000, 3)


@target("rate.1", "incast of 10, 20, 30 senders of 128 KB over 4 subflows each at one 10 Gbit/s port with 100 packets "
        "of queue, K = 10: largest ratio of the mean FCT of amp to that of dctcp", "ratio", at_most=1.2,
        programs=PROGRAMS)
def incast():
    senders, judged, all_of_them = [10, 20, 30, 40], [10, 20, 30], ["dctcp", *RIVALS]

    def wanted(*arguments, senders=senders, names=all_of_them):
        return {(k, name): ["incast", "--senders", k, "--controller", name, *arguments]
                for k in senders for name in names}

    def table(runs, field, shown):
        return {str(k): {name: shown(runs[k, name][field]) for name in all_of_them} for k in senders}

    def ratio(runs, k):
        return runs[k, "amp"]["mean"] / runs[k, "dctcp"]["mean"]

    runs, patient = _simulate(wanted()), _simulate(wanted(*TCP_RTO))
    values = by_seed("braid-sim rate", runs, wanted(senders=judged, names=["amp", "dctcp"]),
                     lambda runs: max(ratio(runs, k) for k in judged))
    detail = {"rounds": 20, "amp / dctcp": {str(k): round(ratio(runs, k), 3) for k in senders},
              "the value by seed": [round(value, 4) for value in values],
              "mean_ms": table(runs, "mean", _ms), "deviation_ms": table(runs, "deviation", _ms),
              "p99_ms": table(runs, "p99", _ms), "timeouts": table(runs, "timeouts", int),
              "suppressions": table(runs, "suppressions", int),
              "mean_ms with TCP's least RTO of 200 ms": table(patient, "mean", _ms)}
    require_complete(detail, {f"{name}, {k} senders": runs[k, name] for k in judged for name in ("amp", "dctcp")})
    return values[0], detail


MULTIPATH, SINGLES, SEEDS = [1, 2, 4], [4, 8, 12, 16, 24, 32], [1, 2, 3]
# Mbit/s of all connections at the port of 10 Gbit/s; required because Jain's index would be 1 if nothing were sent
LEAST_CARRIED = 8000


def _syndrome(multipath, singles, name, seed):
    return ["syndrome", "--multipath", multipath, "--singles", singles, "--controller", name, "--seed", seed]


@target("rate.1b", "1, 2, 4 multipath connections of 4 subflows beside 4 to 32 DCTCP connections at one port: "
        "smallest Jain index of amp, 3 seeds", "index", at_least=0.95, programs=PROGRAMS)
def minimum_window_syndrome():
    points = [(m, s) for m in MULTIPATH for s in SINGLES]
    runs = _simulate({(*point, name, seed): _syndrome(*point, name, seed)
                      for point in points for name in RIVALS for seed in SEEDS})

    def table(show):
        return {name: {f"{m} + {s}": show([runs[m, s, name, seed] for seed in SEEDS]) for m, s in points}
                for name in RIVALS}

    worst = {name: min(runs[m, s, name, seed]["jain"] for m, s in points for seed in SEEDS) for name in RIVALS}
    detail = {"smallest": {name: round(value, 3) for name, value in worst.items()},
              "jain": table(lambda each: round(min(run["jain"] for run in each), 3)),
              "mbit of a multipath / a DCTCP connection":
              table(lambda each: " / ".join(f"{mean([run[field] for run in each]):.0f}"
                                            for field in ("multipath_mbit", "single_mbit")))}
    for m, s in points:
        of_amp = [runs[m, s, "amp", seed] for seed in SEEDS]
        carried = min(m * run["multipath_mbit"] + s * run["single_mbit"] for run in of_amp)
        require(detail, carried >= LEAST_CARRIED, f"{m} + {s}: {carried:.0f} Mbit/s, at least {LEAST_CARRIED}")
    return worst["amp"], detail


THRESHOLD = 10


@target("rate.1c", "4 DCTCP connections beside one and beside four of amp: largest distance of the median queue from "
        "K = 10, 3 seeds", "packets", at_most=2, programs=PROGRAMS)
def queue_length():
    runs = _simulate({(m, name, seed): _syndrome(m, 4, name, seed) for m in (1, 4) for name in RIVALS
                      for seed in SEEDS})
    detail = {f"{m} + 4": {name: {field: median([runs[m, name, seed]["queue"][field] for seed in SEEDS])
                                  for field in ("p10", "median", "p90", "max")} for name in RIVALS} for m in (1, 4)}
    return max(abs(runs[m, "amp", seed]["queue"]["median"] - THRESHOLD) for m in (1, 4) for seed in SEEDS), detail


SHIFTS = range(1, 11)


@target("rate.1d", "a competitor moves from the lower path to the upper one: time until amp has moved the other way, "
        "mean of 10 seeds", "ms", at_most=3, programs=PROGRAMS)
def traffic_shifting():
    runs = _simulate({(name, seed): ["shifting", "--time", 50, "--controller", name, "--seed", seed]
                      for name in RIVALS for seed in SHIFTS})
    times = {name: [runs[name, seed]["shift_ms"] for seed in SHIFTS] for name in RIVALS}
    detail = {"mean_ms": {name: round(mean(each), 2) for name, each in times.items()},
              "each_ms": {name: sorted(round(t, 2) for t in each) for name, each in times.items()}}
    for seed in SHIFTS:
        before, after = (runs["amp", seed][f"windows_{when}"] for when in ("before", "settled"))
        require(detail, after[0] < before[0] / 2 and after[1] > 2 * before[1],
                f"seed {seed}: windows {before} became {after}: nothing has moved")
    return mean(times["amp"]), detail
