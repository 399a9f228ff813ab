"""Target of repairs that respect the congestion window, in virtual time."""

from statistics import mean

from . import require, target
from ._simulate import require_complete, simulate

SENDERS = [30, 40, 44, 48, 60, 70]
SEEDS = range(1, 11)
MOST = max(SENDERS)
# Results of the same runs with the programs of commit 5daa8cea, in which repairs could exceed the window by 64 KiB:
# {senders: (packets lost, mean completion time in ms)}, all seeds together.
BEFORE = {30: (70_993, 20.165), 40: (144_304, 27.559), 44: (181_246, 30.638), 48: (224_048, 33.28),
          60: (379_148, 42.395), 70: (545_279, 49.455)}


def incast_value(runs):
    """(value, detail) of {(senders, seed): figures of braid-sim recovery}."""
    lost = {senders: sum(runs[senders, seed]["lost"] for seed in SEEDS) for senders in SENDERS}
    sent = {senders: sum(runs[senders, seed]["sent"] for seed in SEEDS) for senders in SENDERS}
    means = {senders: 1e3 * mean(runs[senders, seed]["mean"] for seed in SEEDS) for senders in SENDERS}
    slower = {senders: means[senders] / BEFORE[senders][1] for senders in SENDERS}
    worst = max(slower, key=slower.get)
    detail = {"lost / before, by senders": {n: round(lost[n] / BEFORE[n][0], 3) for n in SENDERS},
              "share lost": {n: round(lost[n] / sent[n], 3) for n in SENDERS},
              "mean ms": {n: round(means[n], 2) for n in SENDERS},
              "mean / before": {n: round(slower[n], 3) for n in SENDERS}}
    require_complete(detail, runs)
    require(detail, slower[worst] <= 1, f"{worst} senders: the mean is {slower[worst]:.3f} of before")
    return lost[MOST] / BEFORE[MOST][0], detail


@target("aid.1", f"incast of 64 KB, {min(SENDERS)} to {MOST} senders, {len(SEEDS)} seeds, adaptive: packets lost with "
        f"{MOST} / with repairs beyond the window (commit 5daa8cea); no mean is more than there", "ratio", at_most=0.7,
        programs=["braid-sim"])
def incast():
    return incast_value(simulate("braid-sim recovery", {
        (senders, seed): ["incast", "--policy", "adaptive", "--min-rto", 5, "--senders", senders, "--flows", 10,
                          "--seed", seed] for senders in SENDERS for seed in SEEDS}))
