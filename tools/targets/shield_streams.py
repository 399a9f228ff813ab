"""Target of a peer that attacks with streams: the service that an honest peer of the same gateway still gets, on real
kernels. The attacks are those of tests/attacks.yaml, the measurement is that of guard.1."""

from . import target
from .guard_attacks import MBIT, OPTIONS, PATIENCE_MS, ROUNDS, measure

ATTACKS = 9


@target("shield.4b", f"goodput of an honest peer beside {MBIT} Mbit/s of an accepted peer that attacks with streams "
        "(tests/attacks.yaml: openings, resets, half-open ones, readers that do not read) / beside the same datagrams "
        f"sent to a counting socket, in turns, medians of {ROUNDS}: the worst of {ATTACKS} attacks; ping p99 + at most "
        f"{PATIENCE_MS} ms", "ratio", at_least=0.8, programs=["braidd", "braidctl"], options=OPTIONS)
def stream_attacks(rounds, seconds, attack):
    return measure("shield.4b", ATTACKS, rounds, seconds, attack)
