"""Targets of real hosts: the situations that tests/situations.yaml lists, each with the test that covers it, and the
connections of other programs that steer packets at a gateway's host."""

import re
import signal
import subprocess
import sys
import time

import yaml

from lab import Lab, Link
from lab.boot import PROGRAMS, programs_tree
from lab.neighbours import ALL, Talk, prepare, take_advice

from . import at_least, option, require, target
from ._builds import ROOT, build_tests, dependencies
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
    """Every test of the table, once."""
    rows = [row for row in read(TABLE.read_text(encoding="utf-8")) if kind in (0, row["kind"])]
    dependencies("boot")
    for suite in PROGRAMS:  # else the first tests with machines would make them, within their time
        programs_tree(suite)
    programs = test_programs(rows)
    folder = build_tests(programs) if programs else None
    return situations_value(rows, lambda file, check: (
        passes_in(folder / file, check) if file in programs else passes(file, check)))


WHEN_DOWN = (None, "block")  # without and with a guard
ROUNDS = 3
LEAST_ANSWERS = 5  # of each connection, without which nothing was looked at


class Life:
    """What a gateway goes through, beside a neighbour's connections."""

    def __init__(self, lab, neighbour, when_down):
        self.gateway, self._lab, self._neighbour = lab.edge_gateway, lab, neighbour
        self._when_down = when_down
        self._talks, self.broken, self.answers, self.made = [], [], [], 0

    def up(self):
        self.gateway.start()
        self.gateway.wait_up(subflows=2)
        self._lab.wait_for(lambda: self.gateway.status()["streams"]["intercepting"], "connections to be taken over")

    def connect(self):
        for number, words in enumerate(self._neighbour.talks(self._when_down == "block")):
            self._talks.append(Talk(f"connection {self.made} to {words[2]}", *words))
            self.made += 1

    def look(self, event):
        """Notes each connection that broke, once; the others go on."""
        for talk in list(self._talks):
            if count := talk.breaks():
                self.broken += [{"after": event, **talk.told(), "error": str(talk.error)}] * count
                self._talks.remove(talk)
                talk.close()

    def close(self):
        for talk in self._talks:
            self.answers.append(talk.answered)
            talk.close()
        self._talks.clear()

    def round(self):
        """Braid starts, runs, reloads, is killed, starts, stops. Connections from before go on until it has started,
        those that begin then until the next start. They are looked at while it runs, because some need its tunnel."""
        self.up()
        self.look("start")
        self.close()
        self.connect()
        time.sleep(1)
        self.look("running")
        self.gateway.reload()
        time.sleep(1)
        self.look("reload")
        self.gateway.stop(signal.SIGKILL)
        time.sleep(0.3)
        self.up()
        self.look("kill -9")
        self.gateway.stop()
        time.sleep(0.3)
        self.up()
        self.look("stop and start")
        for second in getattr(self._neighbour, "gateways", [])[1:]:
            second.restart()
            second.wait_up()
            self.look("restart of the other gateway")
        self.gateway.stop()


def beside(kind, when_down, rounds):
    """(breaks, connections, the least answers of one that did not break, the marks that `braidctl doctor` has named and
    that the configuration got therefore) of one neighbour."""
    streams = {"streams": {"enabled": "on"}}
    with Lab([Link("wifi", 100, 4), Link("lte", 100, 4)]) as lab:
        lab.make_gateways(streams, streams)
        prepare(lab, when_down)
        lab.gateway.start()
        with kind(lab) as neighbour:
            advised = take_advice(lab.edge_gateway)
            life = Life(lab, neighbour, when_down)
            if not neighbour.NEEDS_THE_TUNNEL:
                life.connect()
                life.look("before")
            for _ in range(rounds):
                life.round()
            life.close()
        return life.broken, life.made, min(life.answers, default=0), advised


def neighbours_value(kinds, rounds, run=beside):
    """(connections that broke, detail)."""
    broken, detail = [], {"connections": {}, "rounds": rounds}
    for name, kind in kinds.items():
        for when_down in WHEN_DOWN:
            what = f"{name}, when-down: {when_down or 'not set'}"
            breaks, made, answers, advised = run(kind, when_down, rounds)
            broken += [{"neighbour": what, **each} for each in breaks]
            detail["connections"][what] = {"made": made, "broke": len(breaks), "least_answers": answers,
                                           "bypass-marks that doctor advised": advised}
            require(detail, made and (breaks or answers >= LEAST_ANSWERS), f"{what}: nothing was looked at")
    detail["broken"] = broken[:20]
    return len(broken), detail


@target("router.5", "connections of neighbours of a gateway's host (mwan3-like marks, wireguard-go with wg-quick's "
        "rules, Tailscale-like rules, squid as transparent proxy, a second Braid) that break while Braid "
        "(everything-route, streams, with and without guard; bypass-marks where doctor advises them) starts, runs, "
        "reloads, is killed with -9, restarts and stops", "connections", at_most=0,
        programs=["braidd", "braidctl", "linkemu"],
        options=[option("--rounds", at_least(ROUNDS), type=int, default=ROUNDS, metavar="N",
                        help="how often Braid goes through all of that"),
                 option("--neighbour", choices=ALL, help="this one only")])
def neighbours(rounds, neighbour):
    kinds = {name: kind for name, kind in ALL.items() if neighbour in (None, name)}
    return neighbours_value(kinds, rounds)
