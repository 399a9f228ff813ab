"""Target of the proof of addresses: what a peer that has the keys gets by guessing, by proxy or by naming victims."""

from . import MISSING, at_least, option, target
from ._simulate import PROCESSES, simulate

RUNS = 400  # seeds


@target("shield.5", "predicted tokens accepted, responses from other addresses accepted, bytes beyond 3x to unproven "
        "addresses: their sum", "offences", at_most=0, programs=["sim_tokens"],
        options=[option("--runs", at_least(RUNS), type=int, default=RUNS, help="how many seeds")])
def tokens(runs):
    chunk = -(-runs // PROCESSES)
    parts = simulate("sim_tokens", {first: ["--seed", first, "--runs", min(chunk, runs + 1 - first)]
                                    for first in range(1, runs + 1, chunk)})
    detail = {}
    for part in parts.values():
        for name, figure in part.items():
            if name != "first_seed":
                detail[name] = detail[name] + figure if name in detail else figure
    # The attack is one only if it would have worked before: on numbers of SplitMix64 each guess is right.
    if detail["splitmix_foreseen"] != detail["splitmix_numbers"]:
        detail[MISSING] = "the prediction is wrong even for SplitMix64"
    elif detail["broken"]:
        detail[MISSING] = "runs in which a right answer was refused"
    return sum(detail[name] for name in ("predicted_accepted", "stray_accepted", "bytes_beyond")), detail
