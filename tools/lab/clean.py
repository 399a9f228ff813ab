"""Finds and removes what labs leave behind. A lab's name contains its owner: braid-PID-STARTTIME-COUNT."""

import os
import pathlib
import re
import shutil
import signal
import tempfile
import time

from .netns import run

NAME = re.compile(r"braid-(\d+)-(\d+)-(\d+)")
_count = 0


def start_time(pid):
    """The kernel's start time of a process in clock ticks, or None. It distinguishes a reused process id from the old
    one."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def new_name():
    """A name that no other lab of this machine has."""
    global _count
    _count += 1
    return f"braid-{os.getpid()}-{start_time(os.getpid())}-{_count}"


def work_directory(name):
    return pathlib.Path(tempfile.gettempdir()) / name


def live_labs():
    """Names of labs with namespaces on this machine, each with True if its owner still runs."""
    found = {}
    places = [pathlib.Path("/run/netns"), pathlib.Path(tempfile.gettempdir())]
    for entry in [entry for place in places if place.exists() for entry in place.iterdir()]:
        match = NAME.match(entry.name)
        if match:
            found[match.group(0)] = start_time(match.group(1)) == int(match.group(2))
    return found


def _processes(name, spaces):
    """Processes inside the lab's namespaces, and those started with one of its files (linkemu is in none of the
    namespaces)."""
    pids = {int(pid) for space in spaces for pid in run("ip", "netns", "pids", space, check=False).split()}
    files = f"{work_directory(name)}/".encode()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if files in (entry / "cmdline").read_bytes():
                pids.add(int(entry.name))
        except OSError:
            continue
    return pids - {os.getpid()}


def remove_lab(name):
    """Ends the lab's processes, then removes its namespaces, mounts and its work directory."""
    root = pathlib.Path("/run/netns")
    spaces = [entry.name for entry in root.iterdir() if entry.name.startswith(name + "-")] if root.exists() else []
    for end in (signal.SIGTERM, signal.SIGKILL):
        pids = _processes(name, spaces)
        for pid in pids:
            _kill(pid, end)
        if not pids:
            break
        time.sleep(0.2)
    for space in spaces:
        run("ip", "netns", "del", space, check=False)
    for line in reversed(pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()):
        if line.split()[1].startswith(f"{work_directory(name)}/"):
            run("umount", "--lazy", line.split()[1], check=False)
    shutil.rmtree(work_directory(name), ignore_errors=True)


def remove_leftovers():
    """Removes every lab whose owner has ended. Returns their names."""
    dead = [name for name, alive in live_labs().items() if not alive]
    for name in dead:
        remove_lab(name)
    return dead


def _kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
