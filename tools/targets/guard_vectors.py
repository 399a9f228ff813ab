"""Target of the ciphers: vectors of others, two libraries against each other, and comparisons in constant time."""

import subprocess
import tempfile

from . import MISSING, target
from ._builds import ROOT, build, build_tests
from ._gtest import cases

SUITES = {"unit_tunnel": "Wycheproof.*:*LibrariesTest.*", "unit_gateway": "Ed25519.*"}
TESTS = 6  # of these suites
TIMES = ("constant_time", "constant_time_sees_a_leak")


def _compared(program, tests, folder):
    """{name of a test: (compared, differ)} of the tests that compared anything."""
    return {each.name: (int(each.properties["compared"]), int(each.properties["differ"]))
            for each in cases(program, tests, folder) or [] if "compared" in each.properties}


def _times():
    """What valgrind says about comparisons with secrets: the tests that fail."""
    folder = build(ROOT, ["constant_time"], preset="test").parent
    return [name for name in TIMES
            if subprocess.run(["ctest", "--test-dir", folder, "--no-tests=error", "-R", f"^{name}$"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0]


@target("guard.4", "vectors of Project Wycheproof and seeded runs of both libraries of AES-GCM that differ, and "
        "comparisons with secrets whose time depends on them", "cases", at_most=0)
def vectors():
    programs = build_tests(list(SUITES))
    with tempfile.TemporaryDirectory() as folder:
        tests = {name: counts for program, filters in SUITES.items()
                 for name, counts in _compared(programs / program, filters, folder).items()}
    slow = _times()
    detail = {"tests": {name: {"compared": compared, "differ": differ} for name, (compared, differ) in tests.items()},
              "times": slow}
    if len(tests) < TESTS:
        detail[MISSING] = f"{len(tests)} of {TESTS} tests compared anything; this processor has no AES instructions?"
    return sum(differ for _, differ in tests.values()) + len(slow), detail
