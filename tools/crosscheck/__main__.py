"""python3 -m crosscheck [OPTION...]: see sim/ns3/compare."""

import argparse
import json
import os
import pathlib
import sys

from targets._builds import ROOT, build

from .cases import CASES
from .compare import compare
from .run import SEEDS, build_ns3, run_all
from .table import alone, lines, written

DOCUMENT = ROOT / "docs" / "evaluation" / "ns3.md"


def parse():
    parser = argparse.ArgumentParser(prog="sim/ns3/compare", allow_abbrev=False,
                                     description="Runs the same scenarios in Braid's simulator and in ns-3. Prints "
                                     "a table, and as its last line one JSON object.")
    parser.add_argument("--our-program", type=pathlib.Path, help="instead of sim_tcp of the release build")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many (default: %(default)s)")
    parser.add_argument("--cases", default="", help="only those whose name begins so")
    parser.add_argument("--ns3-only", action="store_true", help="ns-3's figures alone")
    parser.add_argument("--write", action="store_true", help=f"puts the table into {DOCUMENT.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("at least one seed")
    if options.write and (options.ns3_only or options.cases):
        parser.error("--write needs all cases of both programs")
    return parser, options


def main():
    parser, options = parse()
    cases = [case for case in CASES if case.name.startswith(options.cases)]
    if not cases:
        parser.error(f"no case begins with '{options.cases}'; there are: " + "; ".join(case.name for case in CASES))
    ns3 = build_ns3()
    if options.ns3_only:
        [runs] = run_all([ns3], ns3, cases, options.seeds)
        print(*alone(cases, runs), sep="\n")
        print(json.dumps(runs))
        return
    ours = "sim_tcp"
    if options.our_program:
        ours = str(options.our_program.resolve())
    elif "BRAID_BIN" not in os.environ:
        build(ROOT, [ours])
    result = compare(cases, *run_all([ours, ns3], ns3, cases, options.seeds))
    print(*lines(result), sep="\n")
    if options.write:
        DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), result, options.seeds), encoding="utf-8")
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
