"""The lab's processes go before the other programs of the machine: what is measured in real time is Braid's doing
then, and not that of a compiler next door. linkemu has real-time priority of its own."""

import contextlib
import os
import pathlib

NICE = -10


def raise_own():
    """For this process and those that it starts from now on."""
    os.setpriority(os.PRIO_PROCESS, 0, NICE)


def raise_session(pid):
    """For the session of a process: where kernels share the CPUs out by sessions, niceness counts only inside of one
    (sched(7), autogroup)."""
    with contextlib.suppress(OSError):  # no such kernel, or the process is gone
        pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(NICE), encoding="ascii")
