"""Records how busy the machine is during a measurement, and with what, to judge failures of time limits."""

import os
import pathlib
import time

_TICK = os.sysconf("SC_CLK_TCK")
_STEAL, _IDLE = 7, (3, 4)  # fields of /proc/stat (proc(5)) that are not work: idle and iowait
MOST_NAMED = 5


class Machine:
    """Figures from the object's creation until told()."""

    def __init__(self):
        self._began = time.monotonic()
        self._cpus = _cpu_times()
        self._waited = _waited()
        self._programs = _programs()

    def told(self):
        """One line: length, load, how much of the CPUs was used, stolen and waited for, and the busiest programs."""
        seconds = max(time.monotonic() - self._began, 1e-3)
        spent = [after - before for after, before in zip(_cpu_times(), self._cpus)]
        everything = sum(spent) or 1
        idle = sum(spent[field] for field in _IDLE)
        words = [f"{seconds:.1f} s", f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs",
                 f"{1 - idle / everything:.0%} busy", f"{spent[_STEAL] / everything:.0%} stolen"]
        if self._waited is not None:
            words.append(f"{(_waited() - self._waited) / seconds:.0%} of the time somebody waited for a CPU")
        return ", ".join(words) + "; " + ", ".join(self._busiest(seconds))

    def _busiest(self, seconds):
        grown = {}
        for pid, (name, spent) in _programs().items():
            before = self._programs.get(pid, (name, 0))
            grown[name] = grown.get(name, 0) + spent - (before[1] if before[0] == name else 0)
        names = sorted(grown, key=grown.get, reverse=True)[:MOST_NAMED]
        return [f"{name} {grown[name] / seconds:.0%}" for name in names if grown[name] > 0]


def wait_for_calm(patience=10.0, look=0.5):
    """Waits until a quarter of the CPUs is idle for a moment, for a limited time."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        before = _cpu_times()
        time.sleep(look)
        spent = [after - earlier for after, earlier in zip(_cpu_times(), before)]
        if sum(spent[field] for field in _IDLE) >= sum(spent) / 4:
            return


def _cpu_times():
    """Ticks of all CPUs together: user, nice, system, idle, iowait, irq, softirq, steal."""
    with open("/proc/stat", encoding="ascii") as file:
        return [int(word) for word in file.readline().split()[1:9]]


def _waited():
    """Seconds in which some program waited for a CPU (pressure stall information); None if the kernel does not provide
    it."""
    try:
        text = pathlib.Path("/proc/pressure/cpu").read_text(encoding="ascii")
        return int(text.partition("total=")[2].split()[0]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def _programs():
    """{pid: (name, CPU seconds)}"""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        found[int(entry.name)] = text.partition("(")[2].rpartition(")")[0], (int(fields[11]) + int(fields[12])) / _TICK
    return found
