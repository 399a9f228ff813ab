"""Whole machines: Debian, booted with its own systemd in a container, with the daemon installed as a user would.

The trees made by debootstrap are kept in $BRAID_BOOT_TREES (default: build/trees of this checkout). $BRAID_MIRROR is
the Debian mirror.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

from .gateway import binary
from .netns import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREES = pathlib.Path(os.environ.get("BRAID_BOOT_TREES", ROOT / "build" / "trees"))
MIRROR = os.environ.get("BRAID_MIRROR", "http://deb.debian.org/debian")
PACKAGES = "systemd,systemd-sysv,dbus,udev,iproute2,iputils-ping"
APT = ["apt-get", "-y", "-q", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=3"]
POLICY = "usr/sbin/policy-rc.d"  # whether packages start what they install
# {suite: (what makes the situations of hosts, what cannot be installed beside it and is only downloaded)}
PROGRAMS = {
    "bookworm": ([
        "network-manager", "systemd-resolved", "ifupdown", "isc-dhcp-client", "dhcpcd-base", "docker.io", "podman",
        "netavark", "firewalld", "iptables", "nftables", "procps", "busybox-static",
        # what braidd and braidctl need
        "libc-ares2", "libev4", "libjerasure2", "libmnl0", "libspdlog1.10", "libyaml-cpp0.7",
        *(["libipsec-mb1"] if os.uname().machine == "x86_64" else [])], ["resolvconf"]),
    "trixie": (["libvirt-clients", "libvirt-daemon-driver-network", "nftables", "procps"], []),
}
# The machine may write /proc/sys/net, and has control groups as Debian does, whatever this host has.
NSPAWN = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network", "UNIFIED_CGROUP_HIERARCHY": "1"}
_SCRIPTS = pathlib.Path("/usr/share/debootstrap/scripts")
_LIBRARY = re.compile(r"(\S+) => (/\S+)")


def tree(suite):
    """The folder of a fresh Debian of that suite, made if it does not exist yet. RuntimeError without a mirror."""
    return _made(TREES / suite, lambda folder: _bootstrap(suite, folder))


def programs_tree(suite):
    """A Debian of that suite with the programs of PROGRAMS, of which none starts by itself."""
    packages, beside = PROGRAMS[suite]
    made = TREES / f"{suite}-programs-{hashlib.sha256(repr(PROGRAMS[suite]).encode()).hexdigest()[:10]}"
    if not made.exists():
        for old in TREES.glob(f"{suite}-programs-*"):
            shutil.rmtree(old, ignore_errors=True)

    def add(folder):
        run("cp", "-a", "--reflink=auto", tree(suite), folder, timeout=600)
        before = _wanted(folder)
        prepare_apt(folder)
        enter(folder, *APT, "update")
        if beside:
            enter(folder, "apt-get", "-q", "download", *beside, directory="/root")
        enter(folder, *APT, "install", *packages, timeout=1800)
        enter(folder, "apt-get", "clean")
        for file in (*_wanted(folder) - before, folder / POLICY):
            file.unlink()

    return _made(made, add)


def _made(folder, make):
    """That folder. `make` fills another one, which becomes this one when it is whole."""
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(partial, ignore_errors=True)
        TREES.mkdir(parents=True, exist_ok=True)
        make(partial)
        partial.rename(folder)
    return folder


def with_proxy():
    """The environment for what downloads packages as apt of this host does."""
    proxy = _proxy()
    return {**os.environ, **({"http_proxy": proxy} if proxy else {})}


def _bootstrap(suite, folder):
    words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, folder, MIRROR]
    if not (_SCRIPTS / suite).exists():
        words.append(_SCRIPTS / "sid")
    run(*words, timeout=1800, env=with_proxy())


def _proxy():
    return run("apt-config", "dump", "--format", "%v", "Acquire::http::Proxy", check=False).strip()


def prepare_apt(folder):
    """Lets apt in that tree use this host's proxy, and start nothing."""
    if proxy := _proxy():
        (folder / "etc/apt/apt.conf.d/10proxy").write_text(f'Acquire::http::Proxy "{proxy}";\n', encoding="ascii")
    (folder / POLICY).write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
    (folder / POLICY).chmod(0o755)


def _wanted(folder):
    """The links by which units start at boot."""
    return set((folder / "etc/systemd/system").glob("*.wants/*"))


class CommandFailed(RuntimeError):
    """A command in a tree that failed; `output`: all that it said."""

    def __init__(self, what, output):
        super().__init__(f"{what}\n{output[-6000:]}")
        self.output = output


def enter(folder, *command, bind=(), directory="/", environment=None, check=True, timeout=600, tell=None):
    """Runs a command in a tree that is not booted, with the host's network, and returns what it said; CommandFailed
    when it fails. `bind`: (folder of the host, place inside); `tell`: is called with each line as it comes."""
    settings = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", **(environment or {})}
    words = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--as-pid2", "--console=pipe",
             f"--directory={folder}", f"--chdir={directory}", f"--machine=braid-{os.getpid()}",
             *(f"--bind={host}:{inside}" for host, inside in bind),
             *(f"--setenv={name}={value}" for name, value in settings.items()), *map(str, command)]
    said = []
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as process:
        late = threading.Timer(timeout, process.kill)
        late.start()
        try:
            for line in process.stdout:
                said.append(line)
                if tell:
                    tell(line)
        finally:
            timely = late.is_alive()
            late.cancel()
    said = "".join(said)
    if not timely:
        raise CommandFailed(f"{folder.name}: {' '.join(map(str, command))}: not within {timeout} s", said)
    if check and process.returncode != 0:
        raise CommandFailed(f"{folder.name}: {' '.join(map(str, command))}: exit {process.returncode}", said)
    return said


def _libraries(program):
    """{name: path} of the shared libraries that a program of this build needs, without those of the C library."""
    found = dict(_LIBRARY.findall(run("ldd", program)))
    return {name: path for name, path in found.items() if not re.match(r"lib(c|m|pthread|dl|rt|resolv)\.so", name)}


class Machine:
    """One booted machine: a Debian tree whose changes are in memory, and gone with it."""

    def __init__(self, base, name, work):
        """`base`: the folder of its Debian, as tree() makes it; `name`: of the machine and of its gateway."""
        self.name, self.tree = name, work / f"{base.name}-{name}"
        self._base, self._layer = base, work / f"{base.name}-{name}.layer"
        self._process = self._leader = None
        self.console = self.tree.with_suffix(".console")

    def prepare(self):
        """Mounts the tree."""
        for folder in (self.tree, self._layer):
            folder.mkdir(parents=True)
        run("mount", "-t", "tmpfs", "tmpfs", self._layer)  # the upper folder of an overlay may not be on another one
        for folder in ("upper", "work"):
            (self._layer / folder).mkdir(mode=0o755)
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={self._base},upperdir={self._layer}/upper,workdir={self._layer}/work", self.tree)
        self.write("etc/machine-id", "")
        (self.tree / "etc/resolv.conf").unlink(missing_ok=True)  # of this host

    def write(self, path, text, mode=0o644):
        """Writes a file of the tree."""
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    def enable(self, *units):
        """Has the boot start these units, before it or while it runs."""
        run("systemctl", "--quiet", f"--root={self.tree}", "enable", *units)

    def disable(self, *units):
        run("systemctl", "--quiet", f"--root={self.tree}", "disable", *units)

    def remove(self, *packages):
        """Has dpkg remove packages from the tree, while the machine is off."""
        run("chroot", self.tree, "dpkg", "--purge", *packages)

    def add(self, package):
        """Has dpkg install a package that programs_tree() has only downloaded."""
        run("chroot", self.tree, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c",
            f"dpkg --install /root/{package}_*.deb")

    def install(self):
        """Installs programs, units and user as `cmake --install` does."""
        for program in ("braidd", "braidctl"):
            shutil.copy(binary(program), self.tree / "usr/bin" / program)
        own = self.tree / "usr/local/lib"
        have = {path.name for folder in ("usr/lib", "lib") for path in (self.tree / folder).rglob("*.so*")}
        for name, path in _libraries(binary("braidd")).items() | _libraries(binary("braidctl")).items():
            if name not in have:  # another release of Debian has another version of it
                shutil.copy(path, own / name)
        run("chroot", self.tree, "ldconfig")
        for unit in ("braid@.service", "braid-guard@.service"):
            shutil.copy(ROOT / "systemd" / unit, self.tree / "usr/lib/systemd/system")
        shutil.copy(ROOT / "systemd/braid.sysusers", self.tree / "usr/lib/sysusers.d/braid.conf")
        run("systemd-sysusers", f"--root={self.tree}")
        self.enable(f"braid@{self.name}.service")

    def configure(self, config, keys):
        """Writes configuration and identity below /etc/braid. Only root may read the key."""
        self.write(f"etc/braid/{self.name}.yaml", json.dumps(config))
        for kind, mode in (("key", 0o600), ("crt", 0o644)):
            shutil.copy(keys / f"{self.name}.{kind}", self.tree / "etc/braid")
            (self.tree / f"etc/braid/{self.name}.{kind}").chmod(mode)

    def boot(self, *more, wait=True):
        """`more`: words for systemd-nspawn, as those of its network; `wait`: for the end of the boot."""
        words = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--directory", str(self.tree),
                 f"--machine={self.tree.name}-{os.getpid()}", "--console=pipe",
                 "--resolv-conf=off", "--capability=CAP_NET_ADMIN", *more]
        with open(self.console, "ab") as console:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                             env={**os.environ, **NSPAWN})
        self._leader = self.wait(self._find_leader, "its first process", 30)
        if wait:
            self.wait_booted()

    def wait_booted(self):
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
                raise TimeoutError(f"{self.tree.name}: {what}: not within {seconds} s\n{self.told()}")
            time.sleep(0.2)
        return value

    def words(self, *command):
        """The command line that runs `command` inside."""
        return ["nsenter", "--target", str(self._leader), "--mount", "--uts", "--ipc", "--net", "--pid", *command]

    def run(self, *command, **options):
        """A command inside."""
        return run(*self.words(*command), **options)

    def property(self, name, unit=None):
        """A property of a unit (the daemon's), from systemd."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit or f"braid@{self.name}").strip()

    def status(self):
        try:
            return json.loads(self.run("braidctl", "status", "--json"))
        except (RuntimeError, ValueError):
            return None

    def up(self):
        status = self.status()
        return bool(status) and all(peer["up"] for peer in status["peers"])

    def told(self, *words):
        """The end of the daemon's journal, or of what these words of journalctl choose."""
        if not self._leader:
            return self.console.read_text(errors="replace")[-2000:] if self.console.exists() else ""
        return self.run("journalctl", "--no-pager", "-n", "60", *(words or ("-u", f"braid@{self.name}")), check=False)

    def power_off(self):
        """Ends the machine as its power button does. What is in its tree stays until close()."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = self._leader = None

    def close(self):
        self.power_off()
        for place in (self.tree, self._layer):
            run("umount", "--lazy", place, check=False)
            shutil.rmtree(place, ignore_errors=True)


class ZoneMachine(Machine):
    """A machine of a fresh Debian, with an address in a network that it shares with the others of its zone."""

    def __init__(self, suite, name, address, work, zone):
        super().__init__(tree(suite), name, work)
        self.suite, self.address, self._zone = suite, address, zone

    def prepare(self):
        super().prepare()
        self.write("etc/systemd/network/10-host0.network",
                   f"[Match]\nName=host0\n[Network]\nAddress={self.address}/24\n")
        # enable() would have what needs a network wait for the other machines.
        run("systemctl", "--quiet", f"--root={self.tree}", "add-wants", "multi-user.target", "systemd-networkd.service")

    def boot(self, *more, wait=True):
        super().boot(f"--network-zone={self._zone}", *more, wait=False)
        run("ip", "link", "set", f"vz-{self._zone}", "up")  # for hosts without systemd-networkd
        if wait:
            self.wait_booted()
