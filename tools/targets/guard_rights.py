"""Target of what is left to a daemon after its start: as plain root, in a container, and under systemd."""

import contextlib
import os
import pathlib
import shutil
import tempfile

from lab import Lab, Wire
from lab.boot import ZoneMachine
from lab.rights import beyond

from . import MISSING, require, target
from ._builds import dependencies
from ._machines import SUITES, configure

# As "podman run --cap-drop all --cap-add NET_ADMIN" in docs/operations.md: root without CAP_SETUID.
CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv",
             "--bounding-set=-all,+net_admin", "--inh-caps=-all,+net_admin"]
USER, GROUP = 990, 991  # of "braid" in the lab
ACCOUNTS = {"passwd": f"root:x:0:0::/root:/bin/sh\nbraid:x:{USER}:{GROUP}::/run/braid:/usr/sbin/nologin\n",
            "group": f"root:x:0:\nbraid:x:{GROUP}:\n"}
# What the filter of systemd-nspawn, which a machine does not have, leaves out.
NSPAWN = "--system-call-filter=seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"


def _processes(name="braidd"):
    """{number: numbers in its namespaces} of processes of that name."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = dict(line.split(":", 1) for line in (entry / "status").read_text("ascii").splitlines())
            if fields["Name"].strip() == name:
                found[int(entry.name)] = fields["NSpid"].split()
    return found


def _started(before, gateway):
    """The number of the daemon's process, of those that were not there before."""
    gateway.start()
    gateway.wait_up()
    (number,) = set(_processes()) - before
    return number


@contextlib.contextmanager
def _own_user(lab):
    """The hub's namespace gets the user, who owns the folder of socket, state and peers, and may read the
    configuration."""
    folder = pathlib.Path("/etc/netns") / lab.concentrator.name
    folder.mkdir(parents=True)
    place = lab.directory / "own"
    place.mkdir()
    os.chown(place, USER, GROUP)
    lab.directory.chmod(0o755)
    hub = lab.gateway
    config, socket = hub.config, hub.socket
    hub.socket = place / "socket"
    hub.config = {**config, "state": str(place / "state"), "peers-folder": str(place / "peers"),
                  "control": {"socket": str(hub.socket)}}
    try:
        for name, text in ACCOUNTS.items():
            (folder / name).write_text(text, encoding="ascii")
        yield
    finally:
        shutil.rmtree(folder)
        hub.config, hub.socket = config, socket


def _plain():
    """{situation: what is beyond the list} of daemons that no systemd starts."""
    found = {}
    with Lab([Wire("wire")]) as lab:
        lab.make_gateways()
        lab.edge_gateway.start()
        before = set(_processes())
        hub = lab.gateway
        found["plain root, no user braid"] = beyond(_started(before, hub), 0)
        hub.stop()
        hub.wrapper = CONTAINER
        found["container"] = beyond(_started(before, hub), 0)
        hub.stop()
        hub.wrapper = []
        with _own_user(lab):
            found["plain root, a user braid"] = beyond(_started(before, hub), USER)
            hub.stop()
    return found


def _booted():
    """The same of booted machines."""
    found = {}
    work = pathlib.Path(tempfile.mkdtemp(prefix="braid-rights-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        machines = [ZoneMachine(suite, name, address, work, f"braid{os.getpid() % 10000}")
                    for suite, (name, address, _) in SUITES.items()]
        for machine in machines:
            stack.callback(machine.close)
            machine.prepare()
            machine.install()
        configure(machines, work)
        for machine in machines:
            before = set(_processes())
            machine.boot(NSPAWN)
            machine.wait(lambda m=machine: m.status() is not None, "an answer")
            inside = machine.property("MainPID")
            (number,) = (each for each, numbers in _processes().items()
                         if each not in before and numbers[-1] == inside)
            found[f"systemd, {machine.suite}"] = beyond(number, int(machine.run("id", "-u", "braid")))
    return found


@target("guard.6", "rights left to a daemon after its start beyond the documented list (user, capabilities, system "
        "calls, files read and written), as plain root with and without a user of its own, in a container, and under "
        "systemd (Debian 12 and 13)", "rights", at_most=0, programs=["braidd", "braidctl"])
def rights():
    dependencies("boot")
    detail = _plain()
    try:
        detail |= _booted()
    except RuntimeError as error:
        return None, detail | {MISSING: f"a tree of Debian: {str(error)[-500:]}"}
    return verdict(detail)


def verdict(detail):
    """(rights, detail) of {situation: what is beyond the list}."""
    value = sum(map(len, detail.values()))
    require(detail, len(detail) == 3 + len(SUITES), f"situations: {len(detail) or 'none'}")
    return value, detail
