"""Runs of GoogleTest programs, for targets that look at single tests."""

import json
import pathlib
import subprocess
from typing import NamedTuple


class Case(NamedTuple):
    """A test that ran or was skipped. `properties`: what it recorded, beside GoogleTest's own values."""

    name: str
    passed: bool
    properties: dict


def cases(program, filters, folder):
    """The tests of a program that match, or None: it crashed, or leaked. Writes its report into the folder."""
    report = pathlib.Path(folder) / f"{program.parent.parent.name}-{program.name}.json"
    done = subprocess.run([program, "--gtest_brief=1", f"--gtest_filter={filters}", f"--gtest_output=json:{report}"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, check=False)
    if not report.exists():
        return None
    told = json.loads(report.read_text(encoding="utf-8"))
    if done.returncode != bool(told["failures"]):
        return None
    return [Case(f"{suite['name']}.{case['name']}", case["result"] == "COMPLETED" and not case.get("failures"), case)
            for suite in told["testsuites"] for case in suite["testsuite"]]
