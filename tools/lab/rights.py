"""What a daemon may do after its start, beyond the list in docs/operations.md ("Rights")."""

import os
import pathlib
import re

from .injected import NUMBERS, Injected

CAPABILITIES = 1 << 10 | 1 << 12 | 1 << 13  # CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW
_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_ON = {"NoNewPrivs": "1", "Seccomp": "2"}  # a filter
_AT_FOLDER = (1 << 64) - 100  # AT_FDCWD
_FAMILIES = {"AF_PACKET": 17, "AF_ALG": 38, "AF_VSOCK": 40}
_DAEMONS_OWN = ("read", "openat", "close", "getpid", "socket")
# Everything that root can write, and some that only root can read: all of them exist, or their folders do.
_NEW = "braid-was-here"
WRITTEN = ("/etc/passwd", "/dev/net/tun", "/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/kernel/core_pattern",
           *(f"{folder}/{_NEW}" for folder in ("/etc", "/usr/bin", "/root", "/dev/shm")))
READ = ("/root", "/home", "/boot", "/var/log", "/proc/1/environ", "/dev/net/tun")


def of_status(pid):
    """{thread: {field: value}} of /proc/PID/task/*/status."""
    return {int(task.name): dict(re.findall(r"^(\w+):\s*(.*)$", (task / "status").read_text("ascii"), re.MULTILINE))
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


def beyond(pid, user):
    """What the process may do beyond the list, a line for each. `user`: the number of the user that it should have."""
    found = []
    for thread, status in of_status(pid).items():
        found += [f"thread {thread} has {name} {status[name]}" for name in _SETS
                  if int(status[name], 16) & ~CAPABILITIES]
        found += [f"thread {thread}: {name} is {status[name]}" for name, wanted in _ON.items()
                  if status[name] != wanted]
        found += [f"thread {thread}: users {status['Uid']}" for number in set(status["Uid"].split()) - {str(user)}]
    with Injected(pid) as process:
        found += [f"system call {name}: {result}" for name, result in (
            (name, process.call(name, -1, -1, -1, -1, -1, -1)) for name in NUMBERS if name not in _DAEMONS_OWN)
            if result not in ("ENOSYS", "EPERM")]
        found += [f"socket of {name}" for name, number in _FAMILIES.items()
                  if process.call("socket", number, 3, 0) != "EPERM"]
        found += [f"writes {path}" for path in WRITTEN if opens(process, path, os.O_WRONLY | os.O_CREAT)]
        found += [f"reads {path}" for path in READ if opens(process, path, os.O_RDONLY)]
    for made in (pathlib.Path(f"/proc/{pid}/root{path}") for path in WRITTEN if path.endswith(_NEW)):
        if made.exists():  # what it sees may be read-only
            made.unlink()
    return found


def opens(process, path, flags):
    """Whether an Injected process may open the file or folder. It is closed again."""
    result = process.call("openat", _AT_FOLDER, path, flags, 0o600)
    if isinstance(result, int):
        process.call("close", result)
    return isinstance(result, int)
