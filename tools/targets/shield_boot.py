"""Target of whole machines: Debian 12 and 13, booted with systemd, a gateway on each, and a tunnel between the two."""

import contextlib
import os
import pathlib
import shutil
import tempfile
import time

from lab.boot import Machine
from lab.gateway import PORT, make_identities

from . import MISSING, target
from ._builds import dependencies

SUITES = {"bookworm": ("edge", "198.51.100.2", "10.99.0.2"), "trixie": ("hub", "198.51.100.3", "10.99.0.3")}
WATCHDOG = 40  # seconds: WatchdogSec and TimeoutStopSec of the unit, and the way back


def _configure(machines, keys):
    pins = make_identities(keys, [machine.name for machine in machines])
    edge, hub = machines
    inner = {name: address for name, _, address in SUITES.values()}
    for own, other in ((edge, hub), (hub, edge)):
        peer = {"name": other.name, "pin": pins[other.name], "prefixes": [inner[other.name] + "/32"]}
        config = {"identity": {"key": f"{own.name}.key", "certificate": f"{own.name}.crt"},
                  "device": {"addresses": [inner[own.name] + "/32"], "routes": [inner[other.name] + "/32"]},
                  "peers": [peer]}
        if own is edge:
            peer["endpoints"] = [f"{hub.address}:{PORT}"]
            config["uplinks"] = [{"interface": "host0", "metered": {"cap": "100GB"}, "gateway": "none"}]
        else:
            config["listen"] = [f"0.0.0.0:{PORT}"]
        own.configure(config, keys)
    return inner


class Checks:
    """What a machine must do, one line each; what it does not is kept."""

    def __init__(self):
        self.done, self.failed = [], []

    def check(self, what, holds, machine):
        try:
            good = holds()
        except (RuntimeError, TimeoutError) as error:
            good, what = False, f"{what}: {error}"
        self.done.append(what)
        if not good:
            self.failed.append(f"{machine.suite}: {what}\n{machine.told()[-1500:]}")


def _ping(machine, address):
    return " 0% packet loss" in machine.run("ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "2", address,
                                            check=False)


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
    holds("carries packets", lambda: _ping(machine, far))
    pid = machine.property("MainPID")
    holds("reloads", lambda: machine.run("systemctl", "reload", f"braid@{machine.name}") == "" and settled()
          and machine.property("MainPID") == pid)
    machine.run("systemctl", "restart", "systemd-networkd")
    time.sleep(3)
    holds("survives networkd's restart", lambda: settled() and _ping(machine, far)
          and machine.property("MainPID") == pid)
    machine.run("sh", "-c", f"kill -STOP {pid}")
    holds("its watchdog bites", lambda: machine.wait(
        lambda: machine.property("MainPID") not in (pid, "0"), "another process", WATCHDOG) and settled())
    holds("carries packets after that", lambda: machine.wait(lambda: _ping(machine, far), "answers", 20))
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
        machines = [Machine(suite, name, address, work, f"braid{os.getpid() % 10000}")
                    for suite, (name, address, _) in SUITES.items()]
        try:
            for machine in machines:
                machine.install()
        except RuntimeError as error:
            return None, {MISSING: f"a tree of Debian: {str(error)[-500:]}"}
        inner = _configure(machines, work)
        for machine in machines:
            stack.callback(machine.close)
            machine.boot()
        for machine, other in (machines, machines[::-1]):
            _examine(machine, other, checks, inner)
        systemd = {machine.suite: machine.run("systemctl", "--version").split()[1] for machine in machines}
    return len(checks.failed), {"systemd": systemd, "checks": len(checks.done), "failed": checks.failed}
