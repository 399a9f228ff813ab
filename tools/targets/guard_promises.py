"""Target of docs/security.md: each of its promises has a test, and the test passes."""

import concurrent.futures
import importlib.util
import re
import subprocess
import sys
import tempfile

from . import MISSING, target
from ._builds import ROOT, build, build_tests
from ._gtest import cases

RULES = ROOT / "tests" / "rules"
SANITIZED = ["unit_tests", "sim_scarce", "sim_scenarios", "sim_stream_scenarios", "sim_wraps"]  # programs to build
OPTIMISED = ["unit_heap", "unit_packet", "unit_session_rest"]
ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)


def _rule():
    """The module of the rule that looks the document's names up."""
    sys.path.insert(0, str(RULES))
    spec = importlib.util.spec_from_file_location("security_rule", RULES / "security.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _promises(rule):
    """{promise: names of its tests}."""
    names = rule.Names(ROOT)
    text = (ROOT / rule.DOCUMENT).read_text(encoding="utf-8")
    return {row["promise"]: {name for name in rule.QUOTED.findall(row["tests"]) if names.is_name(name)}
            for row in ROW.finditer(text) if row["tests"] not in rule.NO_TESTS}


def _plain(name):
    """The name of a test without what its parameters add: "Seeds/Session.Runs/3" is Session.Runs."""
    suite, _, test = name.partition(".")
    return f"{suite.split('/')[-1]}.{test.split('/')[0]}"


def _run(program, wanted, folder):
    """{plain name: passed} of the wanted tests in this program."""
    ran = cases(program, ":".join(f"{name}:*/{name}:{name}/*:*/{name}/*" for name in sorted(wanted)), folder)
    if ran is None:
        return {name: False for name in wanted}
    passed = {}
    for each in ran:
        passed[_plain(each.name)] = passed.get(_plain(each.name), True) and each.passed
    return passed


def _listed(program):
    """Plain names of the tests in this program."""
    told = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True).stdout
    suite, out = "", set()
    for line in told.splitlines():
        if line.startswith("  "):
            out.add(_plain(suite + line.split("#")[0].strip()))
        elif "." in line:
            suite = line.split("#")[0].strip()
    return out


def _results(wanted):
    """{name: passed} of those that a program of unit tests or of virtual time has."""
    folders = [build_tests(SANITIZED), build(ROOT, OPTIMISED, preset="test")]
    programs = [path for folder in folders for path in sorted(folder.iterdir())
                if path.name in {*SANITIZED, *OPTIMISED} or path.name.startswith("unit_")]
    here = {program: _listed(program) & wanted for program in programs if program.name != "unit_experiments"}
    out = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for told in pool.map(lambda each: _run(*each, folder), [each for each in here.items() if each[1]]):
            for name, passed in told.items():
                out[name] = out.get(name, True) and passed
    return out


@target("guard.7", "promises of docs/security.md without a test of theirs, or whose tests fail (those with real "
        "kernels are looked up only, because scripts/test runs them)", "promises", at_most=0)
def promises():
    rule = _rule()
    checked, wrong = rule.complaints(ROOT)
    rows = _promises(rule)
    wanted = {name for tests in rows.values() for name in tests if re.fullmatch(r"[A-Z]\w+\.\w+", name)}
    results = _results(wanted)
    failed = {name for name, passed in results.items() if not passed}
    bare = [promise for promise, tests in rows.items() if not tests or tests & failed]
    detail = {"promises": len(rows), "names": checked, "tests run": len(results), "failed": sorted(failed),
              "without": bare, "wrong names": wrong}
    if not_run := sorted(wanted - set(results)):
        detail[MISSING] = f"no program has these: {', '.join(not_run)}"
    return len(bare) + len(wrong), detail
