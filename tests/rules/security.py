#!/usr/bin/env python3
"""Fails when docs/security.md names a test, a fuzzer, a target or a file that is not there, or leaves a fuzzer out.

    security.py ROOT

What stands in backquotes is looked up by its form: `Suite.Test`, `fuzz_name`, `test_name` (end to end), `room.7`
(of scripts/target), `path/to/file.h`, and any other single word with an underscore, or `hardening`, as a ctest's name.
"""
import re
import sys
from pathlib import Path

from documents import QUOTED, judge, lines

DOCUMENT = "docs/security.md"
NO_TESTS = ("tested by", "---", "the fuzzers below")  # what else stands in a second column


def texts(root, folder, *patterns):
    return "\n".join(path.read_text() for pattern in patterns for path in sorted((root / folder).rglob(pattern)))


class Names:
    """Everything that may be named."""

    def __init__(self, root):
        self._root = root
        tests = re.findall(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", texts(root, "tests", "*.cc"), re.MULTILINE)
        self._tests = {f"{suite}.{test}" for suite, test in tests}
        self.fuzzers = {f"fuzz_{path.name[:-len('_fuzz.cc')]}" for path in (root / "tests/fuzz").glob("*_fuzz.cc")}
        self._end_to_end = set(re.findall(r"^ +def (test_\w+)\(", texts(root, "tests/e2e", "*.py"), re.MULTILINE))
        self._targets = set(re.findall(r'@target\("([a-z]+\.\d+)"', texts(root, "tools/targets", "*.py")))
        lists = texts(root, "tests", "CMakeLists.txt") + texts(root, "systemd", "CMakeLists.txt")
        self._programs = set(re.findall(r"add_test\(NAME (\w+)", lists))
        self._programs |= {f"rule_{name}" for name in re.findall(r"rule_script\((\w+)", lists)}

    def complaint(self, name):
        """The error of a name; None: it is right; '': it is not a name."""
        forms = (
            (r"[a-z]+\.\d+", self._targets, "target"),
            (r"fuzz_\w+", self.fuzzers, "fuzzer"),
            (r"test_\w+", self._end_to_end, "test end to end"),
            (r"[A-Z]\w+\.\w+", self._tests, "test"),
            (r"hardening|[a-z]+_\w+", self._programs, "ctest"))
        for form, known, what in forms:
            if re.fullmatch(form, name):
                return None if name in known else f"there is no {what} {name}"
        if re.fullmatch(r"[\w/]+/[\w/]+\.\w+", name):
            return None if (self._root / name).exists() else f"there is no file {name}"
        return ""

    def is_name(self, text):
        return self.complaint(text) != ""


def complaints(root):
    """(number of names looked up, what is wrong with them)."""
    names, checked, wrong, named = Names(root), 0, [], set()
    for number, line, quoted in lines(root, DOCUMENT):
        for name in quoted:
            complaint = names.complaint(name)
            if complaint == "":
                continue
            checked += 1
            named.add(name)
            if complaint:
                wrong.append(f"line {number}: {complaint}")
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 4 and cells[2] not in NO_TESTS and not any(map(names.is_name, QUOTED.findall(cells[2]))):
            wrong.append(f"line {number}: a promise without a test: {cells[1]}")
    wrong += [f"{name} has no line" for name in sorted(names.fuzzers - named)]
    return checked, wrong


if __name__ == "__main__":
    judge(DOCUMENT, *complaints(Path(sys.argv[1])))
