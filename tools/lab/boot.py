"""Whole machines: Debian, booted with its own systemd in a container, with the daemon installed as a user would.

The trees made by debootstrap are kept in $BRAID_BOOT_TREES (default /var/cache/braid). $BRAID_MIRROR is the Debian
mirror.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from .gateway import binary
from .netns import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREES = pathlib.Path(os.environ.get("BRAID_BOOT_TREES", "/var/cache/braid"))
MIRROR = os.environ.get("BRAID_MIRROR", "http://deb.debian.org/debian")
PACKAGES = "systemd,systemd-sysv,dbus,udev,iproute2,iputils-ping"
_SCRIPTS = pathlib.Path("/usr/share/debootstrap/scripts")
_LIBRARY = re.compile(r"(\S+) => (/\S+)")


def tree(suite):
    """The folder of a fresh Debian of that suite, made if it does not exist yet. RuntimeError without a mirror."""
    made = TREES / suite
    if made.exists():
        return made
    partial = TREES / f"{suite}.new"
    shutil.rmtree(partial, ignore_errors=True)
    TREES.mkdir(parents=True, exist_ok=True)
    proxy = run("apt-config", "dump", "--format", "%v", "Acquire::http::Proxy", check=False).strip()
    environment = {**os.environ, **({"http_proxy": proxy} if proxy else {})}
    words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, partial, MIRROR]
    if not (_SCRIPTS / suite).exists():
        words.append(_SCRIPTS / "sid")
    run(*words, timeout=1800, env=environment)
    partial.rename(made)
    return made


class CommandFailed(RuntimeError):
    """A command in a tree that failed; `output`: all that it said."""

    def __init__(self, what, output):
        super().__init__(f"{what}\n{output[-6000:]}")
        self.output = output


def enter(folder, *command, bind=(), directory="/", environment=None, check=True, timeout=600):
    """Runs a command in a tree that is not booted, with the host's network, and returns what it said; CommandFailed
    when it fails. `bind`: (folder of the host, place inside)."""
    settings = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", **(environment or {})}
    words = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--as-pid2", "--console=pipe",
             f"--directory={folder}", f"--chdir={directory}", f"--machine=braid-{os.getpid()}",
             *(f"--bind={host}:{inside}" for host, inside in bind),
             *(f"--setenv={name}={value}" for name, value in settings.items()), *map(str, command)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, timeout=timeout)
    if check and done.returncode != 0:
        raise CommandFailed(f"{folder.name}: {' '.join(map(str, command))}: exit {done.returncode}", done.stdout)
    return done.stdout


def _libraries(program):
    """{name: path} of the shared libraries that a program of this build needs, without those of the C library."""
    found = dict(_LIBRARY.findall(run("ldd", program)))
    return {name: path for name, path in found.items() if not re.match(r"lib(c|m|pthread|dl|rt|resolv)\.so", name)}


class Machine:
    """One booted machine and its network. Use as a context manager."""

    def __init__(self, suite, name, address, work, zone):
        self.suite, self.name, self.address = suite, name, address
        self.tree = work / f"{suite}-{name}"
        self._zone = zone
        self._process = self._leader = None

    def prepare(self):
        """A copy of the suite's tree, with its address."""
        run("cp", "-a", "--reflink=auto", tree(self.suite), self.tree, timeout=600)
        network = self.tree / "etc/systemd/network"
        network.mkdir(parents=True, exist_ok=True)
        (network / "10-host0.network").write_text(
            f"[Match]\nName=host0\n[Network]\nAddress={self.address}/24\n", encoding="ascii")
        self._want("systemd-networkd.service", "systemd-networkd.service")
        (self.tree / "etc/machine-id").write_text("", encoding="ascii")

    def _want(self, unit, file):
        wants = self.tree / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / unit).unlink(missing_ok=True)
        (wants / unit).symlink_to(f"/usr/lib/systemd/system/{file}")

    def install(self):
        """prepare(), and installs programs, unit and user as `cmake --install` does."""
        self.prepare()
        for program in ("braidd", "braidctl"):
            shutil.copy(binary(program), self.tree / "usr/bin" / program)
        own = self.tree / "usr/local/lib"
        have = {path.name for folder in ("usr/lib", "lib") for path in (self.tree / folder).rglob("*.so*")}
        for name, path in _libraries(binary("braidd")).items() | _libraries(binary("braidctl")).items():
            if name not in have:  # another release of Debian has another version of it
                shutil.copy(path, own / name)
        run("chroot", self.tree, "ldconfig")
        shutil.copy(ROOT / "systemd/braid@.service", self.tree / "usr/lib/systemd/system/braid@.service")
        shutil.copy(ROOT / "systemd/braid.sysusers", self.tree / "usr/lib/sysusers.d/braid.conf")
        run("systemd-sysusers", f"--root={self.tree}")
        self._want(f"braid@{self.name}.service", "braid@.service")
        (self.tree / "etc/braid").mkdir(exist_ok=True)

    def configure(self, config, keys):
        """Writes configuration and identity below /etc/braid. Only root may read the key."""
        folder = self.tree / "etc/braid"
        (folder / f"{self.name}.yaml").write_text(json.dumps(config), encoding="ascii")
        for kind, mode in (("key", 0o600), ("crt", 0o644)):
            shutil.copy(keys / f"{self.name}.{kind}", folder)
            (folder / f"{self.name}.{kind}").chmod(mode)

    def boot(self, *more):
        """`more`: words for systemd-nspawn."""
        words = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--directory", str(self.tree),
                 f"--machine={self._zone}-{self.name}", f"--network-zone={self._zone}", "--console=pipe", *more]
        with open(self.tree.with_suffix(".console"), "wb") as console:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        self._leader = self.wait(self._find_leader, "its first process", 30)
        run("ip", "link", "set", f"vz-{self._zone}", "up")  # for machines without systemd-networkd
        self.wait(lambda: self.run("systemctl", "is-system-running", check=False).strip() in ("running", "degraded"),
                  "the end of its boot", 90)

    def _find_leader(self):
        """The process that has id 1 inside the machine."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                status = (entry / "status").read_text(encoding="ascii", errors="replace")
                parent = re.search(r"PPid:\t(\d+)", status).group(1)
                if parent == str(self._process.pid) and re.search(r"NSpid:.*\t1\n", status):
                    return int(entry.name)
            except (OSError, AttributeError):
                continue
        return None

    def wait(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"{self.suite}: {what}: not within {seconds} s\n{self.told()}")
            time.sleep(0.2)
        return value

    def run(self, *command, **options):
        """A command inside."""
        return run("nsenter", "--target", self._leader, "--mount", "--uts", "--ipc", "--net", "--pid", *command,
                   **options)

    def property(self, name):
        """A property of the daemon's unit, from systemd."""
        return self.run("systemctl", "show", "--value", f"--property={name}", f"braid@{self.name}").strip()

    def status(self):
        try:
            return json.loads(self.run("braidctl", "status", "--json"))
        except (RuntimeError, ValueError):
            return None

    def up(self):
        status = self.status()
        return bool(status) and all(peer["up"] for peer in status["peers"])

    def told(self):
        """The end of the daemon's journal."""
        if not self._leader:
            return self.tree.with_suffix(".console").read_text(errors="replace")[-2000:]
        return self.run("journalctl", "--no-pager", "-n", "30", "-u", f"braid@{self.name}", check=False)

    def close(self):
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.tree, ignore_errors=True)
