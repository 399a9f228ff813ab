"""For measurements of what uses the whole machine, such as cold builds: its time, and what others took."""

import os
import resource
import sys
import time

FREE = 0.1  # of all CPUs: what other programs may use before a measurement begins


def _busy_seconds():
    """CPU time that all programs of the machine have used, and that was stolen from it."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


class Clock:
    """Wall and CPU time of what this process starts, and how much of the CPUs others took."""

    def __init__(self):
        self._wall, self._own, self._all = time.monotonic(), self._children(), _busy_seconds()

    @staticmethod
    def _children():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def read(self):
        wall, own = time.monotonic() - self._wall, self._children() - self._own
        busy, stolen = (after - before for after, before in zip(_busy_seconds(), self._all))
        return {"seconds": round(wall, 1), "cpu_seconds": round(own, 1),
                "cpu_seconds of others": round(max(busy - own, 0) + stolen, 1)}


def wait_for_a_free_machine(patience=60):
    """Other programs would be measured, too."""
    deadline = time.monotonic() + patience
    while True:
        before = _busy_seconds()
        time.sleep(5)
        used = (sum(_busy_seconds()) - sum(before)) / 5 / os.cpu_count()
        if used < FREE:
            return
        if time.monotonic() > deadline:
            sys.exit(f"target: other programs use {used:.0%} of the CPUs")
