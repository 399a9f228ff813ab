"""Target of the ciphers: vectors of others, two libraries against each other, and comparisons in constant time."""

import json
import pathlib
import subprocess
import tempfile

from . import MISSING, target
from ._builds import ROOT, build_tests

SUITES = {"unit_tunnel": "Wycheproof.*:*LibrariesTest.*", "unit_gateway": "Ed25519.*"}
TESTS = 6  # of these suites
DEBIAN_TESTS = ("constant_time", "constant_time_sees_a_leak")


def _compared(program, tests, folder):
    """{name of a test: (compared, differ)} of the tests that compared anything."""
    report = pathlib.Path(folder) / f"{program.name}.json"
    subprocess.run([program, "--gtest_brief=1", f"--gtest_filter={tests}", f"--gtest_output=json:{report}"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, check=False)
    told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {"testsuites": []}
    return {f"{suite['name']}.{case['name']}": (int(case["compared"]), int(case["differ"]))
            for suite in told["testsuites"] for case in suite["testsuite"] if "compared" in case}


def _times(directory):
    """What valgrind says about comparisons with secrets: the tests that fail."""
    build = ROOT / "build" / "test"
    subprocess.run(["cmake", "--preset", "test"], cwd=directory, stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["cmake", "--build", "--preset", "test", "--target", "constant_time"], cwd=directory,
                   stdout=subprocess.DEVNULL, check=True)
    return [name for name in DEBIAN_TESTS
            if subprocess.run(["ctest", "--test-dir", build, "--no-tests=error", "-R", f"^{name}$"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0]


@target("guard.4", "vectors of Project Wycheproof and seeded runs of both libraries of AES-GCM that differ, and "
        "comparisons with secrets whose time depends on them", "cases", at_most=0)
def vectors():
    programs = build_tests(list(SUITES))
    with tempfile.TemporaryDirectory() as folder:
        tests = {name: counts for program, filters in SUITES.items()
                 for name, counts in _compared(programs / program, filters, folder).items()}
    slow = _times(ROOT)
    detail = {"tests": {name: {"compared": compared, "differ": differ} for name, (compared, differ) in tests.items()},
              "times": slow}
    if len(tests) < TESTS:
        detail[MISSING] = f"{len(tests)} of {TESTS} tests compared anything; this processor has no AES instructions?"
    return sum(differ for _, differ in tests.values()) + len(slow), detail
