"""Measurements from outside: unmodified curl's bytes with their arrival times, kernel counters, CPU time."""

import contextlib
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import threading
import time

from .services import Iperf3

median = statistics.median


def percentile(values, share):
    """A percentile by nearest rank, as in the programs of sim."""
    return sorted(values)[math.ceil(round(share * len(values), 6)) - 1]


def longest_gap(times):
    """The longest pause in seconds between two neighbours of a rising list of times."""
    return max((later - earlier for earlier, later in zip(times, times[1:])), default=0.0)


class Download(threading.Thread):
    """One HTTP download by unmodified curl, whose output is read as it comes.

    `arrivals` holds (seconds since start, bytes so far) of every read. After join(): seconds, size, sha256, error.
    `wrapper`: words of a program that starts curl.
    """

    def __init__(self, lab, url, namespace=None, name="curl", wrapper=()):
        super().__init__(daemon=True)
        self._lab = lab
        self.url = url
        self.arrivals = []
        self.size = 0
        self.sha256 = None
        self.error = None
        self.seconds = 0.0
        self.report = {}
        self._began = time.monotonic()
        self._log = lab.log(name)
        self._output = open(self._log, "w+b")  # pylint: disable=consider-using-with
        words = [*wrapper, "curl", "-sSgN", "--max-time", "300", "-w", "%{stderr}%{json}\n", url]
        self.process = lab.start(namespace or lab.client, name, words, stdout=subprocess.PIPE, stderr=self._output)
        self.start()

    def run(self):
        digest = hashlib.sha256()
        handle = self.process.stdout.fileno()
        while part := os.read(handle, 1 << 18):
            self.size += len(part)
            self.arrivals.append((time.monotonic() - self._began, self.size))
            digest.update(part)
        self.process.wait()
        self.process.stdout.close()
        self.seconds = time.monotonic() - self._began
        self.sha256 = digest.hexdigest()
        self._output.seek(0)
        text = self._output.read().decode(errors="replace").strip()
        self._output.close()
        with contextlib.suppress(ValueError):
            self.report = json.loads(text[text.index("{"):])
        if self.process.returncode != 0:
            self.error = f"curl ended with {self.process.returncode}: {text[:300]}"

    def elapsed(self):
        return time.monotonic() - self._began

    def wait_for_size(self, size, timeout=60):
        """Waits until that many bytes are there; raises if curl ends or the time is up before."""
        deadline = time.monotonic() + timeout
        while self.size < size:
            if not self.is_alive() and self.size < size:
                raise RuntimeError(f"the download ended after {self.size} bytes: {self.error}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.size} of {size} bytes after {timeout} s\n" + self._lab.log_tail())
            time.sleep(0.005)

    def finish(self, timeout=120):
        """Waits for the end and raises on failure. Returns self."""
        self.join(timeout)
        if self.is_alive():
            self.stop()
            raise TimeoutError(f"the download has {self.size} bytes after {timeout} s\n" + self._lab.log_tail())
        if self.error:
            raise RuntimeError(self.error)
        return self

    def stop(self):
        """Ends curl in the middle."""
        self._lab.stop(self.process)
        self.join(5)

    def goodput_mbit(self):
        """Bytes of the body over the time from curl's start to its end, connection set-up included."""
        return self.size * 8 / self.seconds / 1e6

    def rate_mbit(self, begin, end):
        """The goodput between two times (seconds since the start)."""
        inside = [size for at, size in self.arrivals if begin <= at <= end]
        return (inside[-1] - inside[0]) * 8 / (end - begin) / 1e6 if len(inside) > 1 else 0.0

    def longest_stall(self, begin=0.0, end=float("inf")):
        """The longest time in seconds without a byte, of pauses that end between two times (seconds since start)."""
        times = [at for at, _ in self.arrivals]
        return max((b - a for a, b in zip(times, times[1:]) if begin <= b and a <= end), default=0.0)


class Echoes:
    """A ping that goes on until stop(): seconds (of time.time()) at which answers came."""

    INTERVAL = 0.02
    _ANSWER = re.compile(r"^\[(\d+\.\d+)\] .*bytes from", re.MULTILINE)

    def __init__(self, lab, namespace, address, name="echoes"):
        self._lab = lab
        self._log = lab.log(name)
        self._log.unlink(missing_ok=True)
        self._process = lab.start(namespace, name, ["ping", "-D", "-n", "-i", self.INTERVAL, address])

    def stop(self):
        """Ends the ping. Returns the times of the answers."""
        self._lab.stop(self._process, signal.SIGINT)
        return [float(at) for at in self._ANSWER.findall(self._log.read_text(errors="replace"))]


_ROUND_TRIP = re.compile(r"bytes from .* time=([\d.]+) ms")


def round_trips(space, address, count, interval, wait=1):
    """Milliseconds of `count` pings, one every `interval` seconds; infinite for those without an answer within `wait`
    seconds."""
    out = space.run("ping", "-n", "-c", count, "-i", interval, "-W", wait, address, check=False,
                    timeout=count * interval * 2 + wait + 30)
    times = [float(each) for each in _ROUND_TRIP.findall(out)]
    return times + [math.inf] * (count - len(times))


def difference(after, before):
    """The growth of counters."""
    return {name: value - before.get(name, 0) for name, value in after.items()}


def cpu_seconds(pid):
    """CPU time, user and system, that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_nanoseconds(pid):
    """{thread id: CPU time, user and system, that it has used}, of all threads of a process."""
    out = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        out[int(task.name)] = int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return out


def resident_bytes(pid, kind="VmRSS"):
    """Resident memory of a process; "RssAnon": without pages of files, which an idle daemon gives back."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return int(re.search(rf"{kind}:\s+(\d+)", file.read()).group(1)) * 1024


def iperf3(lab, address, *options, namespace=None, seconds=2):
    """Runs an iperf3 client and returns its JSON report."""
    Iperf3.wait(lab)
    words = ["iperf3", "-c", address, "-J", "-t", seconds, *options]
    out = (namespace or lab.client).run(*words, check=False, timeout=seconds + 30)
    report = json.loads(out)
    if "error" in report:
        raise RuntimeError(f"iperf3 {options}: {report['error']}")
    return report
