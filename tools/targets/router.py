"""Target of the situations of real hosts: tests/situations.yaml lists them, each with the test that covers it."""

import re
import subprocess
import sys

import yaml

from . import option, require, target
from ._builds import ROOT, build_tests
from .aid import passes

TABLE = ROOT / "tests" / "situations.yaml"
LEAST = 60  # situations that the table must have
KINDS = range(1, 13)  # of issue 48
SECONDS = 300  # that one test of a test program may take
FIELDS = {"kind", "situation", "program", "family"}


def read(text):
    """The situations, each with `test` or `open`. ValueError for one that is not whole."""
    rows = yaml.safe_load(text)["situations"]
    seen = set()
    for row in rows:
        state = {"test", "open"} & set(row)
        key = tuple(row.get(field) for field in sorted(FIELDS))
        if len(state) != 1 or set(row) - state != FIELDS or row["kind"] not in KINDS or key in seen:
            raise ValueError(f"not whole, or there twice: {row}")
        seen.add(key)
    return rows


def test_programs(rows):
    """The test programs (gtest) that the rows name beside files of tests/e2e."""
    files = {row["test"].split()[0] for row in rows if "test" in row}
    return sorted(file for file in files if not file.endswith(".py"))


def passes_in(program, check):
    """True when that test of a gtest program passes, with all its parameters. The output of a failure is written to
    standard error."""
    done = subprocess.run([program, f"--gtest_filter={check}:*/{check}/*"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS)
    # A name that no longer exists, or a skipped test, proves nothing.
    ran = re.search(r"^\[  PASSED  \] [1-9]", done.stdout, re.MULTILINE)
    good = done.returncode == 0 and bool(ran) and "[  SKIPPED ]" not in done.stdout
    if not good:
        sys.stderr.write(f"--- {program} {check}\n{done.stdout[-3000:]}\n")
    return good


def situations_value(rows, run=passes):
    """(situations that are open or whose test fails, detail). Each test runs once."""
    verdicts = {}
    for test in sorted({row["test"] for row in rows if "test" in row}):
        verdicts[test] = run(*test.split())
    kinds = {}
    for row in rows:
        count = kinds.setdefault(row["kind"], {"situations": 0, "open": 0, "failed": 0})
        count["situations"] += 1
        count["open"] += "open" in row
        count["failed"] += "test" in row and not verdicts[row["test"]]
    failed = sorted(test for test, good in verdicts.items() if not good)
    detail = {"situations": len(rows), "kinds": kinds, "tests": len(verdicts), "failed": failed,
              "open": sorted({row["open"] for row in rows if "open" in row})}
    require(detail, len(rows) >= LEAST, f"{len(rows)} of at least {LEAST} situations")
    return sum(count["open"] + count["failed"] for count in kinds.values()), detail


@target("router.1", "situations of real hosts (routes, firewalls, DHCP, IPv6, containers; tests/situations.yaml) in "
        "which something leaks, dies, is undiagnosed or stays changed: their test fails, or they have none",
        "situations",
        at_most=0, programs=["braidd", "braidctl", "linkemu"],
        options=[option("--kind", type=int, default=0, metavar="N", help="those of this kind only")])
def situations(kind):
    """Every test of the table, once. Those of other programs make Debian trees of their own."""
    rows = [row for row in read(TABLE.read_text(encoding="utf-8")) if kind in (0, row["kind"])]
    programs = test_programs(rows)
    folder = build_tests(programs) if programs else None
    return situations_value(rows, lambda file, check: (
        passes_in(folder / file, check) if file in programs else passes(file, check)))
