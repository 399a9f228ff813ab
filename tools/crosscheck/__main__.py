"""python3 -m crosscheck [OPTION...]: see sim/ns3/compare."""

import os
import sys

from targets._builds import ROOT, build

from .cases import CASES
from .command import parse, report
from .compare import compare
from .run import build_ns3, run_both

DOCUMENT = ROOT / "docs" / "evaluation" / "ns3.md"


def main():
    options, cases = parse("sim/ns3/compare", "Runs the same experiments in Braid's simulator and in ns-3.", CASES,
                           DOCUMENT)
    ns3 = build_ns3()
    if "BRAID_BIN" not in os.environ:
        build(ROOT, ["sim_tcp"])
    result = compare(cases, *run_both("sim_tcp", ns3, cases, options.seeds))
    report(result, "ns-3", DOCUMENT, options.write)


if __name__ == "__main__":
    sys.exit(main())
