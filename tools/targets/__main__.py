"""python3 -m targets list | ID [OPTION...]: see scripts/target."""

import argparse
import json
import os
import sys
import time
import traceback

from . import MISSING, load, require
from ._builds import ROOT, build


def parse(targets):
    parser = argparse.ArgumentParser(prog="scripts/target", allow_abbrev=False,
                                     description="Measures one performance target. The last line of the output is one "
                                     "JSON object; the exit code is 0 when the target is met.")
    verbs = parser.add_subparsers(dest="wanted", metavar="list | ID", required=True)
    verbs.add_parser("list", help="all targets, their bounds and their options")
    for entry in targets.values():
        verb = verbs.add_parser(entry.id, allow_abbrev=False, description=entry.what.replace("%", "%%"))
        for each in entry.options:
            verb.add_argument(each.flag, **each.settings)
    return vars(parser.parse_args())


def show(targets):
    for entry in targets.values():
        print(f"{entry.id:10} {entry.bound():>8} {entry.unit:8} {entry.what}")
        for flag, settings, _ in entry.options:
            value = "" if "action" in settings else " " + settings.get("metavar", flag.lstrip("-").upper())
            print(f"{'':28} {flag}{value}: {settings['help']}")


def measure(entry, options):
    """The target's value and detail. A measurement that raises does not pass: it has no value, and MISSING says what
    failed."""
    try:
        return entry.measure(**options)
    except Exception as error:
        traceback.print_exc()
        return None, {MISSING: f"{type(error).__name__}: {str(error)[:1500]}"}


def main():
    targets = load()
    options = parse(targets)
    wanted = options.pop("wanted")
    if wanted == "list":
        show(targets)
        return 0
    entry = targets[wanted]
    if entry.programs and "BRAID_BIN" not in os.environ:
        build(ROOT, entry.programs)
    began = time.monotonic()
    value, detail = measure(entry, options)
    if looks := entry.looks(options):
        require(detail, False, f"a measurement without {', '.join(looks)}: this is a look, and no verdict")
    detail["seconds"] = round(time.monotonic() - began, 1)
    met = entry.met(value) and MISSING not in detail
    print(json.dumps({"id": entry.id, "what": entry.what, "value": value if value is None else round(value, 4),
                      "unit": entry.unit, "target": entry.bound(), "pass": met, "detail": detail}))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
