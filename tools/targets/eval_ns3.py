"""Target of Braid's own simulator against ns-3 (docs/evaluation/ns3.md)."""

from crosscheck.cases import CASES
from crosscheck.compare import compare
from crosscheck.run import SEEDS, build_ns3, run_all

from . import target


@target("eval.4", f"Braid's own TCP model and switches against ns-3, means of {SEEDS} seeds: worst difference after "
        "what is explained", "share", at_most=0.10, programs=["sim_tcp"])
def against_ns3():
    ns3 = build_ns3()
    result = compare(CASES, *run_all(["sim_tcp", ns3], ns3))
    return result.pop("worst"), result
