#!/usr/bin/env python3
"""Fails when an #include of our own points to a room that it may not know, or does not name its room.

    includes.py ROOT

A room is a folder, named as an include names it: `src` and `tools` are include directories, so
`src/tunnel/wire` is "tunnel/wire". The table says which rooms a room knows beside itself: those of its row,
and all that these know. A row may only name rows above it, so there is no circle.
"""
import re
import sys
from pathlib import Path

ALL = ["all"]
KNOWS = {
    "base": [],
    "inet": ["base"],
    "coding": ["base"],
    "scheduler/rate": ["base"],
    "scheduler/path": ["base"],
    "scheduler/recovery": ["base"],
    "ackshim": ["inet"],
    "tunnel/wire": ["inet", "coding", "scheduler/path"],
    "tunnel/queue": ["tunnel/wire"],
    "tunnel/order": ["tunnel/queue"],
    "tunnel/stream": ["tunnel/queue"],
    "tunnel/subflow": ["tunnel/queue", "scheduler/rate", "scheduler/recovery"],
    "tunnel/fec": ["tunnel/subflow", "tunnel/stream"],
    "tunnel/session": ["tunnel/fec", "tunnel/order"],
    "tunnel/api": ["tunnel/session", "ackshim"],
    "tunnel/peer": ["tunnel/api"],
    "tunnel/forward": ["tunnel/peer"],
    "tunnel": ["tunnel/forward"],
    "host": ["tunnel/api"],  # datagrams and routes
    "host/linux": ["host"],
    "host/fake": ["host"],
    "gateway/dtls": ["tunnel", "host/linux"],
    "gateway/config": ["gateway/dtls"],
    "gateway/control": ["tunnel", "host/linux"],
    "gateway/log": ["gateway/control"],
    "gateway/join": ["gateway/config", "gateway/control"],
    "gateway/network": ["gateway/join", "gateway/log"],
    "gateway/uplinks": ["gateway/network"],
    "gateway/state": ["gateway/join", "gateway/uplinks"],
    "gateway/proxy": ["gateway/config", "gateway/log"],
    "gateway": ["gateway/state", "gateway/proxy"],
    "ctl/views": ["gateway"],
    "ctl/client": ["ctl/views"],
    "ctl/firewall": ["ctl/client"],
    "ctl/join": ["ctl/views", "ctl/firewall"],
    "ctl/doctor": ["ctl/join"],
    "ctl/verbs": ["ctl/doctor"],
    "ctl": ["ctl/verbs"],
    "web": ["ctl"],
    "simnet/link": ["base"],
    "simnet": ["simnet/link", "tunnel"],
    "simnet/tcp": ["simnet"],
    "simnet/fabric": ["simnet"],
    "evaluation/models": ["simnet/tcp", "simnet/fabric"],
    "evaluation/recovery": ["evaluation/models"],
    "evaluation/rate": ["evaluation/models"],
    "evaluation/racks": ["evaluation/models"],
    "evaluation/fabric": ["evaluation/models"],
    "evaluation/tcp": ["evaluation/racks"],
    "evaluation": ["evaluation/recovery", "evaluation/rate", "evaluation/fabric", "evaluation/tcp"],
    "evaluation/ns3": ["evaluation"],
    "linkemu": ["simnet/link", "host/linux"],
    "stacks": [],
    "flood": ["gateway"],
    "burst": ["host/linux"],
    "faults": [],
    "bench": ["simnet", "gateway", "host/fake"],
    "tests": ALL,  # its sub-folders too: what a test is about does not have to stand beside it
}
TREES = ["src", "simnet", "evaluation", "tools", "bench", "tests"]
INCLUDE_DIRS = ["src", "tools"]  # and the root itself
FIXTURES = "tests/rules/rooms"  # trees that break the rule on purpose

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]*)[>"]')


def reachable(room):
    """The rooms that `room` may include from, itself among them."""
    if KNOWS[room] is ALL:
        return set(KNOWS)
    return {room}.union(*(reachable(left) for left in KNOWS[room]))


def room_of(folder):
    """The row of a folder: its own; for one of tests that of `tests`, for one of rivals that of the folder above."""
    tests = folder.startswith(("tests/", "evaluation/tests/")) or folder == "tests"
    return "tests" if tests else folder.removesuffix("/rivals")


def folder_of(path):
    """The folder of a file as includes name it."""
    parts = path.parent.parts
    return "/".join(parts[1:] if parts[0] in INCLUDE_DIRS else parts)


def complaints(root):
    """(number of includes looked at, what is wrong with them)."""
    checked, wrong = 0, []
    files = sorted(path for tree in TREES for path in (root / tree).rglob("*") if path.suffix in (".h", ".cc"))
    for path in (path.relative_to(root) for path in files):
        if path.is_relative_to(FIXTURES):
            continue
        room = room_of(folder_of(path))
        if room not in KNOWS:
            wrong.append(f"{path}: lies in a room that the table does not know: {room}")
            continue
        for line in (root / path).read_text().splitlines():
            if not (match := INCLUDE.match(line)):
                continue
            bracket, target = match.groups()
            other = room_of(target.rpartition("/")[0])
            if bracket == "<":
                if other in KNOWS:
                    wrong.append(f"{path}: <{target}> is ours: quotation marks")
                continue
            checked += 1
            if other not in KNOWS:
                wrong.append(f'{path}: "{target}" does not name a room')
            elif other not in reachable(room):
                wrong.append(f'{path}: {room} must not include "{target}"')
    return checked, wrong


def main():
    above = {"all"}
    for room, left in KNOWS.items():
        assert above.issuperset(left), f"the row of {room} names a row that is not above it"
        above.add(room)
    checked, wrong = complaints(Path(sys.argv[1]))
    if checked == 0:
        sys.exit(f"no includes found below {sys.argv[1]}: nothing was checked")
    if wrong:
        sys.exit("includes that break the rule of the house (docs/design.md):\n  " + "\n  ".join(wrong))
    print(f"{checked} includes, all as the table says")


if __name__ == "__main__":
    main()
