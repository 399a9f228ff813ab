"""Gives the lab's processes priority over the other programs of the machine, so that measurements in real time show
Braid and not, for example, a compiler that runs at the same time. linkemu sets its own real-time priority."""

import contextlib
import os
import pathlib

NICE = -10


def raise_own():
    """Sets the priority of this process and of those that it starts from now on."""
    os.setpriority(os.PRIO_PROCESS, 0, NICE)


def raise_session(pid):
    """Sets the priority of a process's session. Kernels that distribute CPU time by session consider niceness only
    within a session (sched(7), autogroup)."""
    with contextlib.suppress(OSError):  # not such a kernel, or the process has ended
        pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(NICE), encoding="ascii")
