#!/usr/bin/env python3
"""Fails when docs/fidelity.md names a file or an identifier that does not exist.

    fidelity.py ROOT

A file is named by its path below src/ or the root (`inet/icmp.h`; `inet/icmp.*` is header and source), or by its
bare name where only one folder of src/ has it. In the first column of a table, an identifier stands in the file
named before it.
"""
import re
import sys
from pathlib import Path

from documents import QUOTED, judge, lines

DOCUMENT = "docs/fidelity.md"
PATH = re.compile(r"([\w/]+)\.(h|cc|\*)")
IDENTIFIER = re.compile(r"\w+")


def find(root, name):
    """The files that `name` means; none when it names no file, or files of several folders."""
    stem, suffix = PATH.fullmatch(name).groups()
    suffixes = (".h", ".cc") if suffix == "*" else (f".{suffix}",)
    if "/" in stem:
        found = [folder / (stem + suffix) for folder in (root / "src", root) for suffix in suffixes]
        return [path for path in found if path.exists()]
    found = [path for suffix in suffixes for path in (root / "src").rglob(stem + suffix)]
    return found if len({path.parent for path in found}) == 1 else []


def complaints(root):
    """(number of names looked up, what is wrong with them)."""
    checked, wrong = 0, []
    for number, line, quoted in lines(root, DOCUMENT):
        cells = line.split("|")
        first = cells[1] if line.startswith("|") else ""
        for text in quoted:
            if PATH.fullmatch(text) and not find(root, text):
                wrong.append(f"line {number}: there is no file {text}, or more than one")
        files = []
        for text in QUOTED.findall(first):
            if PATH.fullmatch(text):
                checked += 1
                files = find(root, text)
            elif files and IDENTIFIER.fullmatch(text):
                checked += 1
                if not any(re.search(rf"\b{text}\b", path.read_text()) for path in files):
                    wrong.append(f"line {number}: {text} is not in {files[0].relative_to(root)}")
    return checked, wrong


if __name__ == "__main__":
    judge(DOCUMENT, *complaints(Path(sys.argv[1])))
