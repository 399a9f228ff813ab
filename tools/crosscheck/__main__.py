"""python3 -m crosscheck [OPTION...]: see sim/ns3/compare."""

import argparse
import json
import os
import sys

from targets._builds import ROOT, build

from .cases import CASES
from .compare import compare
from .run import build_ns3, run_both
from .table import lines, written

DOCUMENT = ROOT / "docs" / "evaluation" / "ns3.md"


def parse():
    parser = argparse.ArgumentParser(prog="sim/ns3/compare", allow_abbrev=False,
                                     description="Runs the same experiments in Braid's simulator and in ns-3. Prints "
                                     "a table, and as its last line one JSON object.")
    parser.add_argument("--seeds", type=int, help="of each case, instead of its own number")
    parser.add_argument("--cases", default="", help="only those whose name begins so")
    parser.add_argument("--write", action="store_true", help=f"puts the table into {DOCUMENT.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.seeds is not None and options.seeds < 1:
        parser.error("at least one seed")
    if options.write and (options.cases or options.seeds):
        parser.error("--write needs all cases with their own seeds")
    cases = [case for case in CASES if case.name.startswith(options.cases)]
    if not cases:
        parser.error(f"no case begins with '{options.cases}'; there are: " + "; ".join(case.name for case in CASES))
    return options, cases


def main():
    options, cases = parse()
    ns3 = build_ns3()
    if "BRAID_BIN" not in os.environ:
        build(ROOT, ["sim_tcp"])
    result = compare(cases, *run_both("sim_tcp", ns3, cases, options.seeds))
    print(*lines(result), sep="\n")
    if options.write:
        DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), result), encoding="utf-8")
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
