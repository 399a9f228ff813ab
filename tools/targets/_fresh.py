"""Fresh Debian machines with two networks between them, and commands that are typed at them. No gateway is
configured."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

from lab.boot import ZoneMachine, enter
from lab.netns import run

# Two networks between the machines: in each the concentrator is the edge's router. {name: (network, metric of routes)}
UPLINKS = {"host0": ("198.51.100", 100), "wan1": ("203.0.113", 200)}
COLUMNS = 100  # of a terminal
_APT = ["apt-get", "-y", "-q", "--no-install-recommends"]
# Between "save cursor" and "restore cursor", apt draws its progress on the lowest line.
_ESCAPE = re.compile(r"\x1b7.*?\x1b8|\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])", re.DOTALL)


def _network(name, number, more):
    base, metric = UPLINKS[name]
    return (f"[Match]\nName={name}\n[Network]\nAddress={base}.{number}/24\n"
            + "".join(f"[Route]\nGateway={base}.{gateway}\nMetric={metric}\n" for gateway in more))


def lines_of(shown):
    """The lines that stand on a terminal after this text, without its control sequences. What a carriage return
    begins anew replaces the line."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in _ESCAPE.sub("", shown).split("\n")]


class Fresh(ZoneMachine):
    """A machine of that suite. `gateways`: {network: [numbers of its routers]}."""

    HOME = "/root"

    def __init__(self, suite, name, number, gateways, work, zone):
        super().__init__(suite, name, f"{UPLINKS['host0'][0]}.{number}", work, zone)
        self._number, self._gateways = number, gateways
        self.outside = f"{name[:1]}{zone}"  # the host's end of the second network
        self.typed = []  # (command, seconds)

    def fill(self, package, *tools, install=True):
        """Installs packages in the tree. Without `install` that one of Braid lies in /root, and apt has beside it
        what it needs."""
        self.prepare()
        shutil.copy(package, self.tree / "root")
        enter(self.tree, "apt-get", "-q", "update")
        if install:
            tools = (f"/root/{package.name}", *tools)
        else:
            enter(self.tree, "apt-get", "-y", "-q", "--download-only", "install", f"/root/{package.name}")
        if tools:
            enter(self.tree, *_APT, "install", *tools)
        for name in UPLINKS:
            self.write(f"etc/systemd/network/10-{name}.network",
                       _network(name, self._number, self._gateways.get(name, [])))

    def start(self, bridge, *more):
        """`more`: words for systemd-nspawn."""
        self.boot(f"--network-veth-extra={self.outside}:wan1", *more)
        run("ip", "link", "set", self.outside, "master", bridge, "up")
        for name in UPLINKS:
            self.wait(lambda name=name: UPLINKS[name][0] in self.run("ip", "-br", "address", "show", "dev", name),
                      f"the address of {name}", 30)

    def type(self, *command, given=None):
        """Runs a command as a person would type it and returns its output. Records the command and its time."""
        began = time.monotonic()
        options = {"timeout": 120}
        if given is not None:
            with tempfile.TemporaryFile("w+") as text:
                text.write(given)
                text.seek(0)
                said = self.run(*command, stdin=text, **options)
        else:
            said = self.run(*command, **options)
        self.typed.append((f"{self.name}: {' '.join(command)}", round(time.monotonic() - began, 2)))
        return said

    def type_at_terminal(self, line, answer, seconds=300):
        """Types a line at a shell in HOME, at a terminal of COLUMNS, and returns what is shown. `answer(prompt)`:
        what is typed at the begun line `prompt`; None: it is no question. RuntimeError when the line fails."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        began, shown = time.monotonic(), ""
        words = self.words("env", "-C", self.HOME, "TERM=xterm", "LC_ALL=C.UTF-8", "sh", "-c", line)
        process = subprocess.Popen(["setsid", "--ctty", "--wait", *words], stdin=theirs, stdout=theirs, stderr=theirs,
                                   start_new_session=True)
        os.close(theirs)
        try:
            with contextlib.suppress(OSError):  # the other end is closed
                for part in iter(lambda: self._read(ours, began + seconds), b""):
                    shown += part.decode(errors="replace")
                    reply = answer(lines_of(shown)[-1])
                    if reply is not None:
                        os.write(ours, reply.encode() + b"\n")
                        shown += "\n"  # a hidden answer is not echoed
            status = process.wait(max(1, began + seconds - time.monotonic()))
        finally:
            os.close(ours)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.typed.append((f"{self.name}: {line}", round(time.monotonic() - began, 2)))
        if status != 0:
            raise RuntimeError(f"{self.name}: {line}: exit {status}\n{shown[-3000:]}")
        return shown

    def _read(self, terminal, deadline):
        if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
            raise RuntimeError(f"{self.name}: what was typed does not end")
        return os.read(terminal, 65536)


@contextlib.contextmanager
def bridge(name):
    """A bridge of this host with that name, for the second network."""
    run("ip", "link", "add", name, "type", "bridge")
    try:
        run("ip", "link", "set", name, "up")
        yield name
    finally:
        run("ip", "link", "del", name, check=False)
