"""python3 -m crosscheck [OPTION...]: see evaluation/ns3/compare."""

import os
import sys

from targets._builds import ROOT, build

from .cases import CASES, is_settled
from .command import parse, report
from .compare import compare
from .run import build_ns3, run_both

DOCUMENT = ROOT / "evaluation" / "ns3" / "README.md"


def main():
    options, cases = parse("evaluation/ns3/compare", "Runs the same experiments in Braid's simulator and in ns-3.",
                           CASES, DOCUMENT)
    ns3 = build_ns3()
    if "BRAID_BIN" not in os.environ:
        build(ROOT, ["braid-sim"])
    result = compare(cases, *run_both("braid-sim tcp", ns3, cases, options.seeds))
    for pair in result["pairs"]:
        pair["settled"] = is_settled(pair["case"])
    report(result, "ns-3", DOCUMENT, options.write)


if __name__ == "__main__":
    sys.exit(main())
