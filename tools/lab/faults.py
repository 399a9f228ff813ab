"""Faults injected into real daemons: one system call refused (strace), or one allocation (tools/faults), at a time."""

import collections
import contextlib
import mmap
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time

from .gateway import binary, merge
from .measure import Download
from .services import Nginx

# The errors that the manual of each call names and that the kernel returns for such descriptors,
# without those that would be a bug of the program (EBADF, EFAULT, EINVAL). EPERM also stands for
# security modules and filters.
REFUSALS = {
    "accept4": ["EMFILE", "ENOBUFS", "ENOMEM", "EINTR", "EPERM", "ECONNABORTED"],
    "bind": ["ENOMEM", "EADDRNOTAVAIL", "EPERM"],
    "clone": ["EAGAIN", "ENOMEM"],
    "clone3": ["EAGAIN", "ENOMEM"],
    "connect": ["ENOMEM", "EPERM"],
    "epoll_create1": ["EMFILE", "ENOMEM"],
    "epoll_ctl": ["ENOMEM", "ENOSPC"],
    "epoll_wait": ["EINTR"],
    "epoll_pwait": ["EINTR"],
    "eventfd2": ["EMFILE", "ENOMEM"],
    "flock": ["EINTR", "ENOMEM"],
    "getrandom": ["EINTR"],
    "getsockname": ["ENOBUFS"],
    "ioctl": ["EBUSY", "EPERM", "ENOMEM", "EINTR"],
    "listen": ["EADDRINUSE", "ENOMEM"],
    "madvise": ["ENOMEM"],
    "mmap": ["ENOMEM"],
    "mprotect": ["ENOMEM"],
    "openat": ["EMFILE", "ENOMEM", "EINTR", "EPERM"],
    "poll": ["EINTR", "ENOMEM"],
    "read": ["EINTR", "ENOBUFS"],
    "recvfrom": ["ENOBUFS", "ENOMEM", "EINTR"],
    "recvmmsg": ["ENOBUFS", "ENOMEM", "EINTR"],
    "recvmsg": ["ENOBUFS", "ENOMEM", "EINTR"],
    "rename": ["EBUSY", "ENOMEM", "EPERM"],
    "sendmmsg": ["ENOBUFS", "ENOMEM", "EINTR", "EPERM"],
    "sendmsg": ["ENOBUFS", "ENOMEM", "EINTR", "EPERM"],
    "sendto": ["ENOBUFS", "ENOMEM", "EINTR", "EPERM"],
    "signalfd4": ["EMFILE", "ENOMEM"],
    "setsockopt": ["ENOBUFS", "ENOMEM", "EPERM"],
    "socket": ["EMFILE", "ENOBUFS", "ENOMEM", "EPERM"],
    "timerfd_create": ["EMFILE", "ENOMEM"],
    "timerfd_settime": ["EPERM"],
    "unlink": ["EBUSY", "ENOMEM", "EPERM"],
    "write": ["EINTR", "ENOBUFS"],
    "writev": ["EINTR", "ENOBUFS"],
}
OTHERS = ["ENOMEM", "EPERM"]  # of calls that are not listed
# These calls cannot fail (brk reports by its value); or, when strace refuses them, they are not done at all, unlike a
# refusal by a kernel.
NEVER = re.compile(r"brk|close|exit|exit_group|execve|munmap|rt_sig\w+|sigaltstack|restart_syscall|arch_prctl|futex|"
                   r"rseq|set_tid_address|set_robust_list|get\w*id|clock_\w+|sched_\w+|umask|alarm|tgkill|sysinfo|"
                   r"uname")
# A running daemon to which memory is refused may end, but in good order (docs/operations.md).
MEMORY = ("mmap", "mprotect", "madvise")
PATIENCE = 15  # seconds
SIZE = 3_000_000  # bytes of the download that runs through a fault
# Seconds after some work by which a call that is to be refused must have been made. Some calls are
# made only every 10 s.
PAUSES = 2, 12, 12
SOME = 4  # of each call, at most this many of its places in a start are tested
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)")


def calls(log):
    """(thread, name, rest of the line) of each call in a log of strace."""
    lines = pathlib.Path(log).read_text(encoding="ascii", errors="replace").splitlines()
    found = [_CALL.match(line) for line in lines]
    return [match.groups() for match in found if match]


def spread(count, most):
    """At most `most` numbers in [0, count), evenly spaced, including the first and the last."""
    return sorted({index * (count - 1) // max(1, min(count, most) - 1) for index in range(min(count, most))})


class Refusal:
    """strace on a running process. With a call and an errno, the first such call of each thread is refused with that
    errno."""

    def __init__(self, pid, log, call=None, error=None):
        self._pid, self._log = pid, pathlib.Path(log)
        self._log.unlink(missing_ok=True)
        words = ["strace", "-f", "-qq", "-s", "0", "-e", "signal=none", "-o", str(log), "-p", str(pid)]
        if call:
            words += ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when=1"]
        self._words = words

    def __enter__(self):
        self._process = subprocess.Popen(self._words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while not self._attached():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"strace does not attach: {self._process.communicate()[1]}")
            time.sleep(0.01)
        return self

    def _attached(self):
        with contextlib.suppress(OSError):
            return f"TracerPid:\t{self._process.pid}\n" in pathlib.Path(f"/proc/{self._pid}/status").read_text("ascii")
        return False

    def __exit__(self, *error):
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=PATIENCE)

    def fired(self):
        return self._log.exists() and "(INJECTED)" in self._log.read_text(errors="replace")


class Allocations:
    """The control file of alloc_faults.so."""

    def __init__(self, path):
        path.write_bytes(bytes(24))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 24)
        self.words = ["env", f"LD_PRELOAD={binary('alloc_faults.so')}", f"BRAID_ALLOC_FAULTS={path}"]

    def order(self, number):
        """Makes the allocation with this number, counted from now, fail; 0: none. Restarts the counts."""
        self._map[:] = struct.pack("=qqq", number, 0, 0)

    def failed(self):
        return struct.unpack("=qqq", self._map[:])[1]

    def seen(self):
        return struct.unpack("=qqq", self._map[:])[2]


def host_state(space):
    """Everything that a daemon may change at its host, for comparisons. Of links and addresses only their existence,
    not their state."""
    wanted = {"-br link show up": 1, "-o address show scope global": 4, "-4 rule show": None, "-6 rule show": None,
              "-4 route show table all proto 66": None, "-6 route show table all proto 66": None}
    return [sorted(" ".join(line.split()[:words]) for line in space.ip(*command.split()).splitlines())
            for command, words in wanted.items()]


class FaultLab:
    """A lab of two links in which the edge uses everything that a daemon may change at a host: its own routes and rules
    for an uplink, counters of a metered uplink, an endpoint with a host name. Use as a context manager around an open
    Lab."""

    def __init__(self, lab):
        self.lab = lab
        self.problems = []
        # Number of refusals by (when, what); 0: planned, but the call was not made
        self.refused = collections.Counter()
        self._hosts = pathlib.Path("/etc/netns") / lab.edge.name  # as ip-netns(8) has it
        self._log = lab.directory / "strace"
        self._nginx = None

    def __enter__(self):
        self._hosts.mkdir(parents=True, exist_ok=True)
        (self._hosts / "hosts").write_text("127.0.0.1 localhost\n203.0.113.1 hub.test\n", encoding="ascii")
        lab, site = self.lab, self.lab.sites[0]
        self.clean = {space: host_state(space) for space in (lab.edge, lab.concentrator)}
        (_, far), _ = site.link_addresses(0)
        uplinks = [{"name": "wifi", "interface": site.device(0), "gateway": far},
                   {"name": "lte", "interface": site.device(1), "metered": {"cap": "1000GB"}, "use": "normal"}]
        lab.start_gateways(edge={"uplinks": uplinks, "listen": ["127.0.0.1:4433"],
                                 "state": str(lab.directory / "edge.state")})
        edge = lab.edge_gateway
        edge.config["peers"][0]["endpoints"].append("hub.test:4433")
        edge.reload()
        edge.wait_up(subflows=2)
        self._nginx = Nginx(lab)
        self._path = self._nginx.add("through-faults", SIZE)
        return self

    def __exit__(self, *error):
        shutil.rmtree(self._hosts, ignore_errors=True)

    # ---- the running daemon

    def download(self):
        return Download(self.lab, f"http://{self.lab.server_addresses()[0]}{self._path}")

    def work(self, gateway):
        """Everything that makes a daemon call the system: status, reloads, an uplink that goes down and up."""
        gateway.status()
        changed = {"uplinks": gateway.config["uplinks"][:1]} if "uplinks" in gateway.config else {
            "listen": [*gateway.config["listen"], "127.0.0.1:4434"]}
        before = {key: gateway.config[key] for key in changed}
        for config in (changed, before):
            merge(gateway.config, config)
            gateway.reload()
            time.sleep(0.15)
        self.lab.edge.ip("link", "set", "lte0", "down")
        time.sleep(0.1)
        self.lab.restore_uplink(1)

    def calls_of(self, gateway):
        """The names of the system calls that work() and a download take."""
        with Refusal(gateway.process.pid, self._log):
            running = self.download()
            self.work(gateway)
            self.work(gateway)
            running.finish()
        return sorted({name for _, name, _ in calls(self._log) if not NEVER.fullmatch(name)})

    def refuse(self, gateway, call, error):
        """Refuses a system call of a running daemon once."""
        what = f"{gateway.name}, running: {call} {error}"
        fired = False
        with self._watched(gateway, what, may_end=call in MEMORY):
            for pause in PAUSES:
                with Refusal(gateway.process.pid, self._log, call, error) as refusal:
                    running = self.download()
                    self.work(gateway)
                    if not refusal.fired():
                        self.work(gateway)  # as often as calls_of() did
                    deadline = time.monotonic() + pause
                    while not refusal.fired() and time.monotonic() < deadline:
                        time.sleep(0.05)
                    fired = refusal.fired()
                self._settle(gateway)
                self.check(running, what)
                if fired:
                    break
                gateway.restart()  # some calls are made once in a life
                self.lab.edge_gateway.wait_up(subflows=2, timeout=PATIENCE)
        self.refused["running", f"{call} {error}"] += fired

    def starve(self, gateway, allocations, number):
        """Makes the allocation with this number in a running daemon fail."""
        what = f"{gateway.name}, running: allocation {number}"
        with self._watched(gateway, what, may_end=True):
            running = self.download()
            allocations.order(number)
            self.work(gateway)
            self._settle(gateway)
            self.check(running, what)
        self.refused["running", "allocation"] += allocations.failed()
        allocations.order(0)

    @contextlib.contextmanager
    def _watched(self, gateway, what, may_end):
        self._may_end, self._what = may_end, what
        handles = f"/proc/{gateway.process.pid}/fd"
        pid, before = gateway.process.pid, len(os.listdir(handles))
        try:
            yield
            if gateway.process.pid == pid:
                deadline = time.monotonic() + 5
                while len(os.listdir(handles)) > before and time.monotonic() < deadline:
                    time.sleep(0.05)
                if len(os.listdir(handles)) > before:
                    self.problems.append(f"{what}: {len(os.listdir(handles))} descriptors instead of {before}")
        except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
            self.problems.append(f"{what}: {str(error)[:400]}")
            self._settle(gateway)

    def _settle(self, gateway):
        """Restores the state after a fault: the right configuration, all uplinks up; restarts a daemon that has
        ended."""
        if gateway.process.poll() is None:
            gateway.reload()
            try:
                return self._all_up()
            except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired):
                if gateway.process.poll() is None:
                    raise
        self._ended(gateway)
        gateway.start()
        return self._all_up()

    def _all_up(self):
        self.lab.restore_uplink(1)
        self.lab.edge_gateway.wait_up(subflows=2, timeout=PATIENCE)

    def _ended(self, gateway):
        code = gateway.process.poll()
        self.lab.stop(gateway.process)
        tail = self.lab.log_tail(gateway.name, lines=1)
        if not self._may_end or code != 1:
            self.problems.append(f"{self._what}: ended with {code}: {tail}")
        left = self.left(gateway.namespace)
        if left:
            self.problems.append(f"{self._what}: left behind {left}")

    def untested(self):
        """The pairs of call and errno that were never refused, because the daemon did not make the call again."""
        return sorted(f"{what}, {when}" for (when, what), times in self.refused.items() if not times)

    def left(self, space):
        """Everything at a host that did not exist before the daemons ran."""
        return [now for now, before in zip(host_state(space), self.clean[space]) if now != before]

    def check(self, running, what):
        running.finish(60)
        if running.sha256 != self._nginx.sha256[self._path]:
            self.problems.append(f"{what}: wrong bytes")

    # ---- the start and the end

    def start_calls(self):
        """{call: (before, count)} of a start and end of the edge's daemon: how often its main thread makes each call
        before it reads its configuration, and from then on. Only calls made in both of two runs."""
        lives = [self._calls_of_a_life() for _ in range(2)]
        return {name: min(life[name] for life in lives) for name in lives[0].keys() & lives[1].keys()}

    def _calls_of_a_life(self):
        code, _, _ = self._life(["-e", "trace=all"])
        if code != 0:
            raise RuntimeError(f"the daemon ends with {code} under strace\n{self.lab.log_tail('edge')}")
        found = calls(self._log)
        main = found[0][0]
        begin = next(index for index, (_, name, rest) in enumerate(found)
                     if name == "openat" and str(self.lab.edge_gateway.path) in rest)
        before = collections.Counter(name for thread, name, _ in found[:begin] if thread == main)
        after = collections.Counter(name for thread, name, _ in found[begin:] if thread == main)
        return {name: (before[name], count) for name, count in after.items() if not NEVER.fullmatch(name)}

    def refuse_at_start(self, call, error, number):
        """Refuses the daemon's call with this number. Then either the start must fail, or everything must work."""
        what = f"start: {call} {error} at call {number}"
        options = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}"]
        self._judge(what, *self._life(options))
        fired = "(INJECTED)" in self._log.read_text(errors="replace")
        self.refused["start", f"{call} {error}"] += fired

    def starve_at_start(self, allocations, number):
        """Makes the allocation with this number, counted from the start of the process, fail; 0: none. Returns the
        number of allocations."""
        allocations.order(number)
        self._judge(f"start: allocation {number}", *self._life(None, allocations.words))
        self.refused["start", "allocation"] += allocations.failed()
        return allocations.seen()

    def _life(self, strace, words=()):
        """One run of the edge's daemon, from its start until it is up and told to end. Returns its exit code (None when
        it hangs), whether it was up, and its output."""
        gateway = self.lab.edge_gateway
        command = [*words, binary("braidd"), "--config", gateway.path]
        if strace is not None:
            command = ["strace", "-f", "-qq", "-s", "128", "-e", "signal=none", "-o", self._log, *strace, *command]
        said = self.lab.directory / "said"
        with open(said, "wb") as out:
            process = gateway.namespace.popen(*command, stdout=out, stderr=out)
        up, told = False, False
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            up = up or gateway.up(subflows=2)
            if up and not told:  # carries a packet in each direction, so that each run makes the calls for that
                self.lab.client.run("ping", "-n", "-c", 1, "-W", 1, self.lab.server_addresses()[0], check=False)
                with contextlib.suppress(ProcessLookupError, IndexError, OSError):
                    os.kill(_daemon(process.pid, strace is not None), signal.SIGTERM)
                    told = True
            time.sleep(0.02)
        code = process.poll()
        if code is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return code, up, said.read_text(errors="replace")

    def _judge(self, what, code, up, said):
        if code is None:
            self.problems.append(f"{what}: hangs, {'was' if up else 'never'} up: {said[-300:]}")
        elif up and code != 0:
            self.problems.append(f"{what}: was up, ended with {code}: {said[-300:]}")
        elif not up and (code not in (1, 127) or not said.strip()):
            self.problems.append(f"{what}: ended with {code}, saying: {said[-300:]!r}")
        left = self.left(self.lab.edge) if code is not None else []
        if self.lab.edge_gateway.socket.exists():
            left.append("control socket")
            self.lab.edge_gateway.socket.unlink()
        if left:
            self.problems.append(f"{what}: left behind {left}")


def _daemon(pid, traced):
    """The process of the daemon: the child of strace, or the process itself."""
    if not traced:
        return pid
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def suspend(process, seconds):
    """Stops a process for `seconds`."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)
