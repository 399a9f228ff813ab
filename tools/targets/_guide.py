"""What a newcomer takes from docs/guide.md: the commands, with the machine at which each is typed, and files."""

import pathlib
import re
from typing import NamedTuple

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide.md"
_CODE = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
_FENCE = re.compile(r"^```ini\n# (/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"(?P<line>\S.*?)\s+# (?P<machine>\w+)(?:: .*)?")


class Command(NamedTuple):
    machine: str
    line: str


def _section(text, heading):
    """What stands below that heading, up to the next one (`# ` alone begins a remark in a file); ValueError without
    it, or with two."""
    found = re.findall(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)", text, re.MULTILINE | re.DOTALL)
    if len(found) != 1:
        raise ValueError(f"{len(found)} sections '{heading}' in the guide")
    return found[0]


def commands_of(text, heading, machines):
    """[Command] of the first block of code below the heading. Each line ends with `# MACHINE` or `# MACHINE: remark`.
    ValueError when a line names none of `machines`, or one of them has no line."""
    block = _CODE.search(_section(text, heading))
    if not block:
        raise ValueError(f"no block of code below '{heading}'")
    commands = []
    for line in block[0].splitlines():
        found = _LINE.fullmatch(line.strip())
        if not found or found["machine"] not in machines:
            raise ValueError(f"at which of {', '.join(machines)} is this typed? {line.strip()}")
        commands.append(Command(found["machine"], found["line"]))
    if idle := set(machines) - {command.machine for command in commands}:
        raise ValueError(f"nothing is typed at {', '.join(sorted(idle))}")
    return commands


def file_of(text, heading):
    """(path, text) of the file that the section shows: its first line is `# PATH`. ValueError when there is none."""
    found = _FENCE.search(_section(text, heading))
    if not found:
        raise ValueError(f"no file below '{heading}'")
    return found[1], found[2]
