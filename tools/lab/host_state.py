"""All that a bare machine of a lab has, to be compared later: files, processes, firewall, routes, settings."""

import collections
import os
import pathlib
import re

FAMILIES = ("-4", "-6")
# The folders in which programs of a host leave something. Braid has none elsewhere.
FOLDERS = ("/etc", "/var/lib", "/run")
# What changes by itself on a host, line by line.
_PASSING = {
    # What other labs have below the folders of the host, which a machine's own folders are laid over: files of their
    # namespaces, and good copies of configurations that are not in /etc/braid (clean.NAME is in their names).
    "files": re.compile(r" /etc/netns(/\S+)?( |$)| /var/lib/braid-host/tmp-braid--\S+$"),
    "settings": re.compile(r"^netfilter/nf_conntrack_count:"),  # connections of this moment
}
# What changes by itself within a line: lifetimes, counters, and times.
_WITHIN = re.compile(r" (expires|valid_lft|preferred_lft) \S+|counter packets \d+ bytes \d+| qlen \d+|\[\d+:\d+\]"
                     r"|^# (Generated|Completed) .*$", re.MULTILINE)
_FILES = f"""
find {' '.join(FOLDERS)} ! -type f -printf '%M %U:%G %y %l %p\\n'
find {' '.join(FOLDERS)} -type f -printf '%M %U:%G %s %p\\n'
find {' '.join(FOLDERS)} -type f -exec sha256sum {{}} +
"""


def state_of(machine):
    """{part of the machine: [its lines]}, without what changes by itself. An empty part is one that the machine does
    not have, as a firewall."""
    def told(*words):
        done = machine.call(*words)
        if done.returncode != 0:
            raise RuntimeError(f"{words}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    parts = {f"{what} {family}": told("ip", family, *what.split()) for family in FAMILIES
             for what in ("address show", "rule list", "route show table all")}
    parts |= {"links": told("ip", "link", "show"), "nftables": told("nft", "list", "ruleset"),
              "iptables": told("iptables-save"), "ip6tables": told("ip6tables-save"),
              "files": told("sh", "-c", _FILES),
              # Some cannot be read by anybody, as a secret that was never set.
              "settings": told("sh", "-c", "cd /proc/sys/net; grep -sr . * || true"),
              "processes": "\n".join(_processes(machine.holder.pid))}
    return {part: _lasting(part, text) for part, text in parts.items()}


def differences(before, after):
    """Lines of what a machine has now and had not, and the other way round. One that there is twice counts twice."""
    out = []
    for part, lines in before.items():
        old, new = collections.Counter(lines), collections.Counter(after[part])
        out += [f"{part}: + {line}" for line in (new - old).elements()]
        out += [f"{part}: - {line}" for line in (old - new).elements()]
    return out


def _lasting(part, text):
    passing = _PASSING.get(part)
    return [line for line in _WITHIN.sub("", text).splitlines() if not (passing and passing.search(line))]


def _processes(holder):
    """The command lines of all processes in a namespace of the machine, for its files or its network."""
    def spaces(process):
        return {os.readlink(process / "ns" / kind) for kind in ("mnt", "net")}

    out, own = [], spaces(pathlib.Path(f"/proc/{holder}"))
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if spaces(process) & own:
                out.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                           or (process / "comm").read_text(encoding="utf-8"))
        except OSError:  # it has ended
            continue
    return out
