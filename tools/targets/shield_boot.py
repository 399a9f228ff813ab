"""Target of whole machines: Debian 12 and 13, booted with systemd, with a gateway on each and a tunnel between them."""

import contextlib
import os
import pathlib
import shutil
import tempfile
import time

from lab.boot import ZoneMachine

from . import MISSING, target
from ._builds import dependencies
from ._machines import SUITES, Checks, configure, ping

WATCHDOG = 40  # seconds: WatchdogSec and TimeoutStopSec of the unit, and the way back


def _examine(machine, other, checks, inner):
    far = inner[other.name]

    def holds(what, condition):
        checks.check(what, condition, machine)

    def settled(seconds=30):
        return machine.wait(lambda: machine.property("ActiveState") == "active" and machine.up(), "up again", seconds)

    holds("started by systemd", settled)
    holds("runs as its user", lambda: machine.run("id", "-u", "braid") == machine.run(
        "awk", "/^Uid:/ {print $2}", f"/proc/{machine.property('MainPID')}/status"))
    holds("the key is root's alone", lambda: machine.run(
        "stat", "-c", "%U %a", f"/etc/braid/{machine.name}.key").strip() == "root 600")
    holds("carries packets", lambda: ping(machine, far))
    pid = machine.property("MainPID")
    holds("reloads", lambda: machine.run("systemctl", "reload", f"braid@{machine.name}") == "" and settled()
          and machine.property("MainPID") == pid)
    machine.run("systemctl", "restart", "systemd-networkd")
    time.sleep(3)
    holds("survives networkd's restart", lambda: settled() and ping(machine, far)
          and machine.property("MainPID") == pid)
    machine.run("sh", "-c", f"kill -STOP {pid}")
    holds("its watchdog bites", lambda: machine.wait(
        lambda: machine.property("MainPID") not in (pid, "0"), "another process", WATCHDOG) and settled())
    holds("carries packets after that", lambda: machine.wait(lambda: ping(machine, far), "answers", 20))
    machine.run("systemctl", "stop", f"braid@{machine.name}")
    holds("ends well", lambda: machine.property("Result") == "success"
          and "braid0" not in machine.run("ip", "-br", "link")
          and "proto 66" not in machine.run("ip", "route", "show", "table", "all"))
    machine.run("systemctl", "start", f"braid@{machine.name}")
    holds("starts again", settled)


@target("shield.boot", "machines booted with systemd (Debian 12 and 13): of start, credentials, reload, networkd's "
        "restart, watchdog and end, what does not work", "checks", at_most=0, programs=["braidd", "braidctl"])
def boot():
    dependencies("boot")
    work = pathlib.Path(tempfile.mkdtemp(prefix="braid-boot-"))
    checks = Checks()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        machines = [ZoneMachine(suite, name, address, work, f"braid{os.getpid() % 10000}")
                    for suite, (name, address, _) in SUITES.items()]
        try:
            for machine in machines:
                stack.callback(machine.close)
                machine.prepare()
                machine.install()
        except RuntimeError as error:
            return None, {MISSING: f"a tree of Debian: {str(error)[-500:]}"}
        inner = configure(machines, work)
        for machine in machines:
            machine.boot()
        for machine, other in (machines, machines[::-1]):
            _examine(machine, other, checks, inner)
        systemd = {machine.suite: machine.run("systemctl", "--version").split()[1] for machine in machines}
    return len(checks.failed), {"systemd": systemd, "checks": len(checks.done), "failed": checks.failed}
