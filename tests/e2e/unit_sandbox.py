"""The restrictions of systemd/braid@.service for a daemon that no systemd starts."""

import pathlib
import re

UNIT = pathlib.Path(__file__).resolve().parents[2] / "systemd/braid@.service"
_BIND = re.compile(r"^Bind(ReadOnly)?Paths=(.*)$", re.MULTILINE)


def sandboxed(binds=True, before=""):
    """Words before the daemon's command line: two capabilities, no /proc/sys, and the unit's folders mounted elsewhere
    (`binds`), as systemd.exec(5) says. `before`: shell commands in the daemon's mount namespace before those mounts."""
    mounts = []
    for read_only, words in _BIND.findall(UNIT.read_text(encoding="ascii")) if binds else ():
        for word in words.split():
            source, _, place = word.removeprefix("-").partition(":")
            mount = f"mkdir -p {place}; mount --bind {source} {place}"
            if read_only:
                mount += f"; mount -o remount,bind,ro {place}"
            mounts.append((place, f"if [ -e {source} ]; then {mount}; fi" if word.startswith("-") else mount))
    script = "\n".join(["mount -t tmpfs tmpfs /run", before, *(mount for _, mount in sorted(mounts)),
                        "mount -t proc -o subset=pid proc /proc",
                        "exec setpriv --bounding-set=-all,+net_admin,+net_raw --inh-caps=-all,+net_admin,+net_raw "
                        '--no-new-privs "$@"'])
    return ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sandbox"]
