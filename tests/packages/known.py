"""The programs' commands and options (from --help), and configuration keys (from the reader's answers)."""

import json
import re
import subprocess

from lab.gateway import binary

_OPTION = re.compile(r"(?:^|[\s,])(--?[a-z][a-z-]*)")
_NONSENSE = "z" * 60  # so long that no key is taken for what was meant
_KNOWN = re.compile(r"^(?:.*: )?(\S*)'z+': unknown key; known here: (.*)$", re.MULTILINE)


def is_built(program):
    """True when this build has the program, since braid-web is optional."""
    try:
        return bool(binary(program))
    except FileNotFoundError:
        return False


def _help(*words):
    return subprocess.run([binary(words[0]), *words[1:], "--help"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def _section(text, name):
    """The lines of a --help below that heading, one for each entry."""
    found = re.search(rf"^{name}:\n((?:  .*\n?)+)", text, re.MULTILINE)
    return [line for line in found.group(1).splitlines() if re.match(r"  \S", line)] if found else []


def options(*words):
    """The options that a program, or a command of it, takes."""
    found = set()
    for line in _section(_help(*words), "Options"):
        found |= set(_OPTION.findall(re.split(r"\s{2,}", line.strip())[0]))
    return found


def commands(*words):
    """{words of a command: its positional arguments}, for every command that does something."""
    text = _help(*words)
    groups = set(re.findall(r"^([A-Z][a-z ]*):$", text, re.MULTILINE)) - {"Options", "Positionals", "Examples"}
    below = [line.split()[0] for group in groups for line in _section(text, group)]
    if not below:
        return {words[1:]: [line.split()[0] for line in _section(text, "Positionals")]}
    found = {}
    for name in below:
        found |= commands(*words, name)
    return found


def _answer(path, value, folder):
    """The output of braidd for a file that has `value` at that path. For a list, the path continues in its first
    item."""
    for key, in_list in reversed(path):
        value = {key: [value] if in_list else value}
    file = folder / "probe.yaml"
    file.write_text(json.dumps(value), encoding="ascii")
    return subprocess.run([binary("braidd"), "--check", "--config", file], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False).stderr


def _keys(path, folder):
    """The keys that the reader knows at that path; None where it wants no mapping."""
    named = "".join(f"{key}[0]." if in_list else f"{key}." for key, in_list in path)
    for where, keys in _KNOWN.findall(_answer(path, {_NONSENSE: 1}, folder)):
        if where == named:
            return keys.split(", ")
    return None


def sections(folder):
    """{path such as "tunnel.ack-shim": its keys} of every mapping that braidd reads; the whole file is ""."""
    found, waiting = {}, [[]]
    while waiting:
        path = waiting.pop()
        keys = _keys(path, folder)
        if keys is None:
            continue
        found[".".join(key for key, _ in path)] = keys
        waiting += [[*path, (key, in_list)] for key in keys for in_list in (False, True)]
    return found
