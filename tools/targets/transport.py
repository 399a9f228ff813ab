"""Targets of the tunnel's transport on long, bursty and shallow paths and behind policers, in virtual time by braid-sim
rate download and rate policed (issue 51). The controller is `wan`."""

from statistics import median

from . import option, require, target
from . import at_least as number
from ._simulate import simulate

PROGRAMS = ["braid-sim"]
SEEDS = 10
# Least share of the sum of payload by network. `long` is judged by the time to 0.9 of the sum.
SHARES = {"far": 0.6, "bursty": 0.88, "shallow": 0.88, "wifi-lte": 0.92}
MOST_TO_FULL = 2.5  # s
SENDERS = ["cubic", "newreno"]


def _seeds():
    return option("--seeds", number(SEEDS), type=int, default=SEEDS, help="how many seeds")


def worst_ratio(shares, to_full):
    """(The smallest measured / bound, what it is of). `shares`: {network: the least of the senders' medians};
    `to_full`: the time to 0.9 of the sum, s."""
    ratios = {network: shares[network] / bound for network, bound in SHARES.items()}
    ratios["time to 0.9 of the sum"] = MOST_TO_FULL / to_full
    worst = min(ratios, key=ratios.get)
    return ratios[worst], worst


@target("transport.1v", "15 s downloads in virtual time, start included: share of the sum of payload, the least of "
        f"cubic and newreno, medians over the seeds, / its bound ({', '.join(f'{n} {b}' for n, b in SHARES.items())}), "
        f"and {MOST_TO_FULL} s / the time to 0.9 of the sum at 200 ms and 1 %; the smallest", "ratio", at_least=1,
        programs=PROGRAMS, options=[_seeds()])
def downloads(seeds):
    runs = simulate("braid-sim rate", {
        (network, sender, seed): ["download", "--network", network, "--sender", sender, "--controller", "wan",
                                  "--seed", seed]
        for network in [*SHARES, "long"] for sender in SENDERS for seed in range(1, seeds + 1)})

    def medians(network, field):
        return {sender: round(median(runs[network, sender, seed][field] for seed in range(1, seeds + 1)), 3)
                for sender in SENDERS}

    table = {network: medians(network, "share") for network in [*SHARES, "long"]}
    to_full = medians("long", "full_s")
    value, worst = worst_ratio({network: min(table[network].values()) for network in SHARES}, max(to_full.values()))
    return value, {"worst": worst, "share of the sum": table, "s to 0.9 of the sum, long": to_full}


RATES, BURSTS = [2, 8, 40], [10, 30, 100]  # Mbit/s; ms at that rate
LEAST_GOODPUT = 0.9
POLICED_SENDERS = ["saturated", "cubic"]


@target("transport.7", "policers of 2, 8 and 40 Mbit/s with 10, 30 and 100 ms of burst, 40 ms, in virtual time: share "
        "lost in any 5 s after the first second of a minute, the worst over raw segments and cubic and all seeds; "
        f"goodput at least {LEAST_GOODPUT} of what TCP without a tunnel carries at the policed rate", "share",
        at_most=0.10, programs=PROGRAMS, options=[_seeds()])
def policers(seeds):
    runs = simulate("braid-sim rate", {
        (rate, burst, sender, seed): ["policed", "--policed-rate", rate * 1e6, "--burst-ms", burst, "--sender", sender,
                                      "--controller", "wan", "--seed", seed]
        for rate in RATES for burst in BURSTS for sender in POLICED_SENDERS for seed in range(1, seeds + 1)})
    detail = {}
    for key in dict.fromkeys(key[:3] for key in runs):
        each = [runs[*key, seed] for seed in range(1, seeds + 1)]
        rate, burst, sender = key
        detail[f"{rate} Mbit/s, {burst} ms, {sender}"] = {
            "worst loss in 5 s": round(max(run["worst_loss"] for run in each), 3),
            "loss": round(max(run["loss"] for run in each), 3),
            "goodput / policed rate": round(min(run["goodput_share"] for run in each), 3)}
    low = {name: figures["goodput / policed rate"] for name, figures in detail.items()
           if figures["goodput / policed rate"] < LEAST_GOODPUT}
    require(detail, not low, f"goodput below {LEAST_GOODPUT} of the policed rate: {low}")
    return max(run["worst_loss"] for run in runs.values()), detail
