"""The common parts of both comparisons' command lines."""

import argparse
import json

from targets._builds import ROOT

from .table import lines, written


def parse(program, description, cases, document):
    """(the options, the cases that are wanted)."""
    parser = argparse.ArgumentParser(prog=program, allow_abbrev=False, description=f"{description} Prints a table, "
                                     "and as its last line one JSON object.")
    parser.add_argument("--seeds", type=int, help="of each case, instead of its own number")
    parser.add_argument("--cases", default="", help="only those whose name begins so")
    parser.add_argument("--write", action="store_true", help=f"puts the table into {document.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.seeds is not None and options.seeds < 1:
        parser.error("at least one seed")
    if options.write and (options.cases or options.seeds):
        parser.error("--write needs all cases with their own seeds")
    wanted = [case for case in cases if case.name.startswith(options.cases)]
    if not wanted:
        parser.error(f"no case begins with '{options.cases}'; there are: " + "; ".join(case.name for case in cases))
    return options, wanted


def report(result, rival, document, write):
    """Prints what compare() returns, and writes it into the document if that is wanted."""
    print(*lines(result, rival), sep="\n")
    if write:
        document.write_text(written(document.read_text(encoding="utf-8"), result, rival), encoding="utf-8")
    print(json.dumps(result))
