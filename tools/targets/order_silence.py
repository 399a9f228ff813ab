"""Targets of a path that becomes silent: its data in flight is reinjected before the path is called suspect
(EarlyReinjectionBudget)."""

import contextlib
import os
from statistics import mean, stdev

from lab import Link, median

from . import require, target
from ._builds import build, changed, uncommitted
from ._duel import rounded
from ._simulate import simulate
from .order import LINKS, QUICK, ROUNDS, SECONDS
from .pair import PROGRAMS, Pair, stalls_of

DEATHS, STEADY = 10, 0.98
# A patch that sets the limit of early reinjection (EarlyReinjectionBudget) to nothing.
RULE_OFF = ("without-doubt", "src/tunnel/subflow/in_flight.h", "kMost = 256;", "kMost = 0;")
JITTERY = [Link(link.name, link.rate_mbit, link.rtt_ms, link.loss, more={"jitter_ms": link.rtt_ms / 4})
           for link in LINKS]  # a quarter each way: half the RTT


def _jittery(programs, seed):
    """Mbit/s of a download whose both gateways are of that folder; None: of this build."""
    with _gateways_of(programs), Pair(JITTERY, seed=seed) as pair:
        done = pair.download(pair.file(SECONDS)).finish()
        pair.verify(done)
        return done.goodput_mbit()


@contextlib.contextmanager
def _gateways_of(programs):
    before = os.environ.get("BRAID_BIN")
    if programs is not None:
        os.environ["BRAID_BIN"] = str(programs)
    try:
        yield
    finally:
        os.environ.pop("BRAID_BIN", None)
        if before is not None:
            os.environ["BRAID_BIN"] = before


@target("order.7", f"WiFi or LTE silently dead in mid-download: longest stall at the receiver, worst of {DEATHS} each;"
        f" with jitter of half the RTT and no death at least {STEADY} of the goodput without the new rule", "s",
        at_most=0.10, programs=PROGRAMS,
        options=[QUICK])
def silence(quick):
    # Builds before anything is measured, because building makes the machine busy and warm. Both are built in the same
    # way from the same commit.
    old = build(changed(*RULE_OFF), PROGRAMS)
    detail, worst = {}, 0
    for name in (link.name for link in LINKS):
        def switch(lab, down, name=name):
            lab.links.set(name, down=down)
        stall, detail[f"{name} dies"] = stalls_of(1 if quick else DEATHS, lambda lab: switch(lab, True),
                                                  lambda lab: switch(lab, False))
        worst = max(worst, stall)
    rates = [(_jittery(None, seed), _jittery(old, seed)) for seed in range(1, 1 + (1 if quick else ROUNDS))]
    kept = median(here / there for here, there in rates)
    detail["with jitter"] = {"ratio": rounded(kept), "Mbit/s with the rule and without": rates}
    require(detail, not uncommitted(), "what is not committed is not in the build without the rule")
    require(detail, kept >= STEADY, f"{kept:.3f} of the goodput with jitter, at least {STEADY} must be")
    return worst, detail


SEEDS, QUICK_SEEDS, SIMULATED_SECONDS = 40, 4, 60


def _simulated(programs, seeds):
    """Mbit/s of a download in virtual time by seed, by the braid-sim of that folder; None: of this build."""
    with _gateways_of(programs):
        done = simulate("braid-sim rate", {seed: ["bulk", "--jitter", 0.5, "--seed", seed, "--seconds",
                                                  SIMULATED_SECONDS] for seed in seeds})
    return [done[seed]["goodput_mbit"] for seed in seeds]


@target("order.7b", "the same links in virtual time with jitter of half the RTT: goodput / without the new rule, "
        f"mean of {SEEDS} seeds", "ratio", at_least=STEADY, programs=["braid-sim"], options=[QUICK])
def jitter(quick):
    seeds = range(1, 1 + (QUICK_SEEDS if quick else SEEDS))
    here, there = _simulated(None, seeds), _simulated(build(changed(*RULE_OFF), ["braid-sim"]), seeds)
    ratios = [a / b for a, b in zip(here, there)]
    detail = {"95 % interval, +-": rounded(1.96 * stdev(ratios) / len(ratios) ** 0.5),
              "smallest and largest": [rounded(min(ratios)), rounded(max(ratios))],
              "Mbit/s with the rule and without": [rounded(mean(here)), rounded(mean(there))],
              "seconds of a run": SIMULATED_SECONDS}
    require(detail, not uncommitted(), "what is not committed is not in the build without the rule")
    return mean(ratios), detail
