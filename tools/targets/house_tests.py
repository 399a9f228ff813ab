"""Targets of the tests themselves: the time of all tests in a new clone, and the effect of a busy machine on them.
"""

import collections
import contextlib
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

from lab.measure import cpu_seconds

from . import MISSING, always, at_least, option, require, target
from ._builds import ROOT, clone, full_hash, uncommitted
from ._cold import Clock, wait_for_a_free_machine
from .house import CPU, COMMIT_OPTION

RESULTS = ROOT / "build" / "targets"
SIDES, PHASES = ("baseline", "here"), ("build", "test")
TESTS_BEGIN = "Test project "  # what ctest prints first


def _machine():
    """The properties that two measurements must share to be comparable."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    compiler = subprocess.run(["c++", "--version"], stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]
    return {"cpu": model.group(1) if model else os.uname().machine, "cpus": os.cpu_count(),
            "kernel": os.uname().release, "compiler": compiler}


class ColdRun:
    """scripts/test of one commit in its own clone without a compiler cache, phase by phase. Results are kept in a file,
    because a run takes long."""

    def __init__(self, commit):
        self.commit = commit
        self._folder = ROOT / "build" / "cold" / commit
        self._file = RESULTS / "house.5" / f"{commit}.json"
        self._machine = _machine()
        self.phases = {}
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            if kept["machine"] == self._machine:
                self.phases = kept["phases"]

    def measure(self, phase):
        wait_for_a_free_machine()
        self.phases[phase] = {"build": self._build, "test": self._test, "demo": self._demo}[phase]()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        kept = {"commit": self.commit, "machine": self._machine, "phases": self.phases}
        self._file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")

    def _script(self, *arguments):
        keep = {name: value for name, value in os.environ.items()
                if not name.startswith("BRAID_") and name != "PYTHONPATH"}
        return subprocess.Popen([self._folder / "scripts" / "test", *arguments], cwd=self._folder, text=True,
                                stdout=subprocess.PIPE, stderr=sys.stderr, env={**keep, "CCACHE_DISABLE": "1"})

    def _build(self):
        """Everything that comes before the tests, in a new clone: the tests are only listed."""
        clone(self.commit, self._folder)
        clock = Clock()
        with self._script("-N") as script:
            script.stdout.read()
        if script.returncode != 0:
            sys.exit(f"target: scripts/test of {self.commit} does not build")
        return clock.read()

    def _demo(self):
        """scripts/demo in another new clone. What it installs counts only where it was not there before."""
        folder = self._folder.with_name(f"{self._folder.name}-demo")
        clone(self.commit, folder)
        keep = {name: value for name, value in os.environ.items() if not name.startswith("BRAID_")}
        clock = Clock()
        done = subprocess.run([folder / "scripts" / "demo"], cwd=folder, stdout=sys.stderr, check=False,
                              env={**keep, "CCACHE_DISABLE": "1"})
        return {**clock.read(), "exit": done.returncode}

    def _test(self):
        if not (self._folder / "build").exists():
            sys.exit(f"target: measure the phase 'build' of {self.commit} first")
        log = RESULTS / "house.5" / f"{self.commit}.log"
        clock = None
        with self._script() as script, open(log, "w", encoding="utf-8") as file:
            for line in script.stdout:
                file.write(line)
                if clock is None and line.startswith(TESTS_BEGIN):
                    clock = Clock()
        text = log.read_text(encoding="utf-8")
        count = re.search(r"tests passed, \d+ tests? failed out of (\d+)", text)
        if clock is None or not count:
            sys.exit(f"target: scripts/test of {self.commit} ran no tests: {log}")
        failed = re.findall(r"^\t *\d+ - (.*) \(", text, re.MULTILINE)
        return {**clock.read(), "tests": int(count.group(1)), "failed": failed, "exit": script.returncode}


@target("house.5", "a cold scripts/test (new clone, no compiler cache, nothing else running), wall time / the "
        "baseline's", "ratio", at_most=0.5, options=[
            COMMIT_OPTION,
            option("--side", always, choices=SIDES, metavar="baseline|here", help="measure only this one now"),
            option("--phase", always, choices=PHASES, metavar="build|test", help="measure only this phase now"),
            option("--again", always, action="store_true", help="measure anew what an earlier call has kept")])
def cold_tests(baseline, side, phase, again):
    if uncommitted():
        sys.exit("target: commit first: a clone has nothing of what is not committed")
    runs = {"baseline": ColdRun(full_hash(baseline)), "here": ColdRun(full_hash("HEAD"))}
    for name in [side] if side else SIDES:
        for each in [phase] if phase else PHASES:
            if again or each not in runs[name].phases:
                runs[name].measure(each)
    detail = {name: {"commit": run.commit, **run.phases} for name, run in runs.items()}
    lacking = [f"{each} of {name}" for name, run in runs.items() for each in PHASES if each not in run.phases]
    if lacking:
        return None, {MISSING: lacking, **detail}
    for name, run in runs.items():
        test = run.phases["test"]
        require(detail, test["exit"] == 0, f"all tests passed, {name}: failed are {test['failed']}")
    seconds = {name: sum(run.phases[each]["seconds"] for each in PHASES) for name, run in runs.items()}
    detail["seconds of both"] = seconds
    return seconds["here"] / seconds["baseline"], detail


@target("house.5b", "a cold scripts/test (new clone, no compiler cache, nothing else running), wall time; in detail "
        "a cold scripts/demo, which may take 5", "minutes", at_most=20, options=[
            option("--again", always, action="store_true", help="measure anew what an earlier call has kept")])
def cold_minutes(again):
    if uncommitted():
        sys.exit("target: commit first: a clone has nothing of what is not committed")
    run = ColdRun(full_hash("HEAD"))
    for phase in (*PHASES, "demo"):
        if again or phase not in run.phases:
            run.measure(phase)
    demo = run.phases["demo"]
    detail = {"commit": run.commit, **run.phases, "demo_minutes": round(demo["seconds"] / 60, 1)}
    test = run.phases["test"]
    require(detail, test["exit"] == 0, f"all tests passed: failed are {test['failed']}")
    require(detail, demo["exit"] == 0, "scripts/demo to its end")
    return round(sum(run.phases[phase]["seconds"] for phase in PHASES) / 60, 1), detail


RUNS = 20
END_TO_END = [ROOT / "scripts" / "test", "-L", "e2e"]


class Neighbour:
    """Another program, which keeps one core busy."""

    def __enter__(self):
        words = ["taskset", "--cpu-list", str(CPU), sys.executable, "-c", "while True: pass"]
        self._process = subprocess.Popen(words, start_new_session=True)
        self._began = time.monotonic()
        return self

    def __exit__(self, *error):
        self._process.kill()
        self._process.wait()

    def ended(self):
        return self._process.poll() is not None

    def share(self):
        """The share of its core that the program has used since it was started."""
        return round(cpu_seconds(self._process.pid) / (time.monotonic() - self._began), 2)


def _run_all(folder, number):
    """One run of all end-to-end tests: (its test cases as XML, its output)."""
    report = folder / f"{number}.xml"
    report.unlink(missing_ok=True)
    with open(folder / f"{number}.log", "w+", encoding="utf-8", errors="replace") as log:
        subprocess.run([*END_TO_END, "--verbose", "--output-junit", report], stdout=log, stderr=subprocess.STDOUT)
        log.seek(0)
        return xml.etree.ElementTree.parse(report).getroot().findall("testcase"), log.read()


@target("house.6", f"failures of {RUNS} runs of all end-to-end tests while another program keeps one core busy",
        "failures", at_most=0, options=[
            option("--runs", at_least(RUNS), type=int, default=RUNS, help="fewer are a look, and no verdict")])
def busy_neighbour(runs):
    folder = RESULTS / "house.6"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([*END_TO_END, "-N"], stdout=subprocess.DEVNULL, check=True)  # builds, with the machine to itself
    failures, missed, seconds, slowest = [], 0, [], collections.Counter()
    with Neighbour() as neighbour:
        for number in range(1, runs + 1):
            began = time.monotonic()
            cases, output = _run_all(folder, number)
            seconds.append(round(time.monotonic() - began))
            failures += [f"run {number}: {case.get('name')} ({case.get('status')})" for case in cases
                         if case.get("status") != "run"]
            missed += len(re.findall(r"^\d+: attempt \d+: ", output, re.MULTILINE))
            for case in cases:
                slowest[case.get("name")] = max(slowest[case.get("name")], round(float(case.get("time")), 1))
            print(f"run {number}: {len(cases)} tests, {len(failures)} failures so far, {seconds[-1]} s",
                  file=sys.stderr)
        share, alone = neighbour.share(), neighbour.ended()
    detail = {"runs": runs, "tests of a run": len(cases), "failed": failures, "attempts that missed a bound": missed,
              "neighbour's share of its core": share, "seconds": seconds, "logs": str(folder.relative_to(ROOT)),
              "slowest_s": dict(slowest.most_common(5))}
    require(detail, not alone, "the other program to the end: it died")
    return len(failures), detail
