"""Set-ups of two gateways that are broken on purpose: where they are made, how doctor is asked about them, and how what
it says is judged."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
from typing import Callable

from lab.gateway import binary
from lab.lab import Lab
from lab.links import Wire
from lab.netns import run

DOCTOR_SECONDS = 40
SETTLED = 11  # seconds that a daemon runs before doctor trusts its status
PATIENCE = 20  # seconds that a host may need to be well after the remedy
NAME_SERVER = "nameserver 192.168.10.2\n"


@dataclasses.dataclass
class Broken:
    """One set-up. `make` breaks it and gives what was said. `cause` and `remedy` are patterns for that."""

    name: str
    cause: str
    remedy: str
    make: Callable
    kind: int = 0  # of issue 48
    program: str = ""  # what makes the situation
    family: str = ""
    mend: Callable | None = None  # does what the remedy says, or what it leaves to others

    @property
    def is_mended(self):
        """Whether the remedy is tried: by the group `run` of its pattern, which is a command, and by `mend`."""
        return self.mend is not None or "(?P<run>" in self.remedy


class Setups(list):
    """The set-ups of a target, in the order in which they are made."""

    def broken(self, name, cause, remedy, **more):
        """Registers the decorated function, which breaks a Place and gives what was said."""

        def register(function):
            self.append(Broken(name, cause, remedy, function, **more))
            return function

        return register


class Place:
    """One lab with two plain wires. Its gateways are configured again for each set-up."""

    def __init__(self, sites=1, edge=None, hub=None):
        """`edge`, `hub`: changes of their configurations (lab.gateway.merge)."""
        self.lab = Lab([Wire("dsl"), Wire("lte")], sites=sites)
        self._changes = edge, hub

    def __enter__(self):
        self.lab.__enter__()
        self.lab.make_gateways(*self._changes)
        self.edge, self.hub = self.lab.edge_gateway, self.lab.gateway
        self.space, self.far = self.lab.edge, self.lab.concentrator
        self._at_end = contextlib.ExitStack()
        self._give_name_server()
        self._fresh = {gateway.name: json.dumps(gateway.config) for gateway in self.lab.gateways()}
        self._undo = contextlib.ExitStack()
        self._asked = None
        return self

    def __exit__(self, *error):
        self.reset()
        self._at_end.close()
        self.lab.__exit__(*error)

    def _give_name_server(self):
        """The edge asks a host of its LAN for names, and not the servers of this machine."""
        folder = pathlib.Path("/etc/netns") / self.space.name
        folder.mkdir(parents=True)
        (folder / "resolv.conf").write_text(NAME_SERVER, encoding="ascii")
        self._at_end.callback(shutil.rmtree, folder)

    # ---- between two set-ups

    def reset(self):
        """Restores the original state, without running daemons. These end first, and put back what they found."""
        for gateway in self.lab.gateways():
            if gateway.process:
                gateway.stop()
        self._undo.close()
        for gateway in self.lab.gateways():
            gateway.config = self.fresh(gateway)
            gateway.write_config()

    def fresh(self, gateway):
        """Its configuration before any set-up."""
        return json.loads(self._fresh[gateway.name])

    def undo(self, function, *arguments, **options):
        """Called at the next reset, the last one first."""
        self._undo.callback(function, *arguments, **options)

    # ---- what breaks

    def sysctl(self, space, **settings):
        """Sets them until the reset."""
        for name, value in settings.items():
            file = pathlib.Path("/proc/sys") / name.replace("__", "/")
            before = space.inside(file.read_text).strip()
            space.sysctl(**{name: value})
            self.undo(lambda n=name, b=before: space.sysctl(**{n: b}))

    def nft(self, space, rules):
        """A ruleset until the reset; nft wants a chain's end at the end of a line."""
        space.run("nft", "-f", "-", stdin=_input(rules.replace("; } ", "; }\n") + "\n"))
        self.undo(lambda: space.run("nft", "flush", "ruleset"))

    def command(self, space, do, undo):
        space.run(*do.split())
        self.undo(lambda: space.run(*undo.split(), check=False))

    def unplug(self, do):
        """Runs a command at the edge that costs an uplink its addresses or routes; the reset gives them back."""
        self.space.run(*do.split())
        self.undo(self.plug)

    def plug(self):
        for index in range(2):
            self.lab.restore_uplink(index)

    # ---- what is asked

    def start(self, *gateways):
        for gateway in gateways:
            gateway.start()

    def connect(self):
        """Starts both daemons and waits until doctor trusts their status."""
        self.start(self.hub, self.edge)
        self.edge.wait_up(subflows=len(self.edge.config["uplinks"]))
        time.sleep(SETTLED)

    def reconnect(self):
        """The same with the configurations as they are now."""
        for gateway in self.lab.gateways():
            if gateway.process:
                gateway.stop()
        self.connect()

    @staticmethod
    def doctor(gateway, wrapper=(), file=None):
        """(exit status, what it says) of `braidctl doctor` where that gateway is. `file`: the name by which the host
        knows the configuration."""
        gateway.write_config()
        done = _run(gateway.namespace.words(*wrapper, binary("braidctl"), "doctor", file or gateway.path))
        return done.returncode, done.stdout

    def asked(self, gateway, **options):
        """The output of doctor, which must report a problem."""
        self._asked = gateway, options
        code, said = self.doctor(gateway, **options)
        if code != 1:
            raise RuntimeError(f"doctor found nothing, exit {code}:\n{said}")
        return said

    def shell(self, gateway, prepare, options=(), **more):
        """The same behind shell commands, in a mount namespace of its own."""
        wrapper = ["unshare", *options, "--mount", "sh", "-ec", f'{prepare}\nexec "$0" "$@"']
        return self.asked(gateway, wrapper=wrapper, **more)

    def etc(self):
        """A shell command that gives a mount namespace the host's /etc, with changes that last until the reset."""
        root = self.lab.directory / "etc"
        root.mkdir(exist_ok=True)
        run("mount", "-t", "tmpfs", "tmpfs", root)  # an overlay's upper folder must not be on another overlay
        self.undo(run, "umount", "-l", root)
        for name in ("upper", "work"):
            (root / name).mkdir()
        (root / "upper" / "resolv.conf").write_text(NAME_SERVER, encoding="ascii")
        return f"mount -t overlay overlay -o lowerdir=/etc,upperdir={root}/upper,workdir={root}/work /etc"

    def asking(self, server):
        """What doctor says at the edge with this name server."""
        resolv = self.lab.directory / "resolv.conf"
        resolv.write_text(f"nameserver {server}\n", encoding="ascii")
        return self.shell(self.edge, f"mount --bind {resolv} /etc/resolv.conf")

    # ---- what helps

    def try_remedy(self, setup, said):
        """Does what the remedy says. Raises RuntimeError when doctor still finds something wrong afterwards where it
        was asked last."""
        gateway, options = self._asked
        commands = {match["run"] for match in re.finditer(setup.remedy, said)} if "(?P<run>" in setup.remedy else ()
        for command in sorted(commands):
            done = _run(gateway.namespace.words(*options.get("wrapper", ()), "sh", "-ec", command))
            if done.returncode != 0:
                raise RuntimeError(f"'{command}': exit {done.returncode}\n{done.stdout}")
        if setup.mend:
            setup.mend(self)
        deadline = time.monotonic() + PATIENCE
        while True:
            code, said = self.doctor(gateway, **options)
            if code == 0:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"exit {code}:\n{said}")
            time.sleep(1)

    @staticmethod
    def log_of(gateway):
        """The output of a daemon that cannot start, or that is killed after a while."""
        gateway.write_config()
        return _run(gateway.namespace.words("timeout", "14", binary("braidd"), "--config", gateway.path)).stdout


def _run(words):
    """The finished process; it finds the programs of the build by PATH."""
    path = f"{pathlib.Path(binary('braidctl')).parent}:{os.environ['PATH']}"
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=DOCTOR_SECONDS, check=False,
                          env={**os.environ, "PATH": path})


def _input(text):
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    return reader


def judge(place, setup):
    """(what is missing, the output). The first is empty when cause and remedy are named and the remedy helps, where it
    is tried. A set-up that cannot be made lacks everything."""
    place.reset()
    try:
        said = setup.make(place)
    except (RuntimeError, OSError, TimeoutError, subprocess.SubprocessError) as error:
        return [f"could not be made: {error}"], ""
    missing = [what for what, pattern in (("cause", setup.cause), ("remedy", setup.remedy))
               if not re.search(pattern, said, re.DOTALL)]
    if not missing and setup.is_mended:
        try:
            place.try_remedy(setup, said)
        except (RuntimeError, OSError, TimeoutError, subprocess.SubprocessError) as error:
            missing.append(f"a remedy that helps: {error}")
    return missing, said


def healthy(place):
    """The findings of doctor at healthy gateways, with and without daemons. There must be none."""
    found = []
    place.reset()
    place.start(place.hub)
    time.sleep(SETTLED)
    looks = [("edge without daemon", place.edge)]
    for when, gateways in (("not started", looks), ("running", [("edge", place.edge), ("concentrator", place.hub)])):
        if when == "running":
            place.start(place.edge)
            place.edge.wait_up(subflows=2)
            time.sleep(SETTLED)
        for name, gateway in gateways:
            code, said = place.doctor(gateway)
            if code != 0:
                found.append(f"healthy {name}: exit {code}\n{said}")
    return found


def judge_all(place, setups, only, show):
    """({set-up: what is missing}, names of the set-ups). A healthy pair before and after them must give no finding."""
    failed, done = {}, []

    def look(when):
        for finding in healthy(place) if not only else []:
            failed[f"{when}: {finding}"] = ["a finding where nothing is wrong"]

    look("before")
    for setup in setups:
        if only and only not in setup.name:
            continue
        missing, said = judge(place, setup)
        done.append(setup.name)
        if missing:
            failed[setup.name] = [*missing, said[-3000:]]
        if show or missing:
            print(f"=== {setup.name}: {'lacks ' + ', '.join(map(str, missing)) if missing else 'named'}\n{said}",
                  flush=True)
    look("after")
    place.reset()
    return failed, done
