"""python3 -m second [--only WORD] [--quick]: runs the checks of tests/second.yaml against the daemon in $BRAID_BIN, and
prints one JSON object: {"checks": number, "failed": {id: why}}. It needs root, and Debian's Python."""

import argparse
import json
import pathlib
import sys
import time
import traceback

import yaml

from . import checks

TABLE = pathlib.Path(__file__).parents[1] / "second.yaml"
FIELDS = {"id", "section", "does", "observed"}
MORE = {"made", "frames", "steps", "suite", "vector", "slow"}


def read(text, known):
    """The rows of the table. ValueError for one that is not whole, or that nothing checks."""
    rows = yaml.safe_load(text)["checks"]
    seen = set()
    for row in rows:
        row.setdefault("made", str(row.get("id")).replace(".", "_"))
        if not FIELDS <= set(row) <= FIELDS | MORE or row["id"] in seen or row["made"] not in known:
            raise ValueError(f"not whole, there twice, or made by nothing: {row}")
        seen.add(row["id"])
    return rows


def failure(place, row):
    """Why a check does not hold, or None."""
    try:
        checks.CHECKS[row["made"]](place, row)
        assert place.daemon.process.poll() is None, "the daemon has ended"
        return None
    except Exception as error:  # whatever it is, the check does not hold
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({pathlib.Path(where.filename).name}:{where.lineno})"[:600]
    finally:
        place.end()


def main():
    parser = argparse.ArgumentParser(prog="second", description=__doc__)
    parser.add_argument("--only", action="append", metavar="WORD", help="checks with this word in their id")
    parser.add_argument("--quick", action="store_true", help="without the slow ones")
    options = parser.parse_args()
    rows = read(TABLE.read_text(encoding="utf-8"), checks.load())
    rows = [row for row in rows if not (options.quick and row.get("slow"))
            and (not options.only or any(word in row["id"] for word in options.only))]
    failed = {}
    from .place import Place  # after the table has been read: it needs the lab
    with Place() as place:
        for row in rows:
            began = time.monotonic()
            why = failure(place, row)
            if why:
                failed[row["id"]] = why
                if place.daemon.process.poll() is not None:
                    place.daemon.start()
            took = time.monotonic() - began
            print(f"{'FAILS' if why else 'holds'} {took:6.2f} s  {row['id']}{': ' + why if why else ''}",
                  file=sys.stderr, flush=True)
    print(json.dumps({"checks": len(rows), "failed": failed}))
    return 1 if failed else 0
