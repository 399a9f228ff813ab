"""Finds phrases in comments and documents that a reader from outside stumbles over.

    python3 -m plain [--change BASE] [FILE...]

Without files: every tracked source, document and manual page. With --change: only lines that were added since the git
revision BASE. Prints one line a finding, `FILE:LINE: phrase -> what to write instead`, and a count by rule at the end.
A phrase that is right in its place may stay: the exit status is 0 in any case. `house.8` bounds how many there are.
"""

import argparse
import collections
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDEST = 300  # characters of a line of a document

_THINGS = "packet|datagram|peer|path|subflow|flow|stream|session|gateway|frame|socket|file|device|table|queue"
_START = r"^\s*(?:///?|//!?|#|\*)?\s*"
RULES = [(name, re.compile(pattern), remedy) for name, pattern, remedy in (
    ("so many", r"\bso (many|much|long|few|far|often|late|early)\b(?! (as|that)\b)",
     "name the constant or say the number: 'at most kMax packets'"),
    ("ours", r"(?:^|[.;(] ?)Ours\b", "drop it, or say where the value comes from: 'Measured: ...', 'Chosen: ...'"),
    ("of-start", _START + r"(?:Of (?:it|them|those|these|all|what|whom|whose)\b)", "begin with the subject"),
    ("pronoun-start", r"^\s*(?:///?|//!?)\s*"
     r"(?:It|They|Those|These|That|This one|One that|Who|Whoever|Whom|Neither|Both)\b"
     r"(?! (?:is|are) (?:called|thrown|returned))", "name the subject"),
    ("who-things", rf"\b(?:{_THINGS})s?,? (?:who|whose|whom)\b", "which, that; or two sentences"),
    ("whoever", r"\bwho(?:ever)? (?:is|has|can|keeps|gives|repeats|knows|comes|goes|asks|begins|may|must|was|does|"
     r"holds)\b",
     "name the subject: 'a peer that ...', 'the caller'"),
    ("in the place of", r"\bin (?:the )?place of\b", "instead of"),
    ("for ever", r"\bfor ever\b|\bever after\b|\bhenceforth\b", "forever, from then on"),
    ("anew", r"\banew\b", "again"),
    ("archaic", r"\blest\b|\bwhence\b|\bthereof\b|\bherein\b|\btherein\b|\bnought\b|\bunto\b|\baught\b",
     "the plain word"),
    ("for-because", r", for (?:it|they|he|a|an|the|what|who|that|these|those|nobody|nothing|all|no)\b",
     "because, since"),
    ("is no", r"\bis no(?! longer\b| more\b)\b", "is not a"),
    ("goes", r"(?<![\w.-])(?:goes|go|went)\b(?! (?:to|on|through|by|back|over|out|wrong|ahead|away|into|in)\b)",
     "is sent, is evicted, is dropped, leaves: say which"),
    ("likewise", r"\bThe same (?:of|for|as)\b", "repeat the sentence's subject"),
    ("reckon", r"\breckon\w*|\bponder\w*|\bheed\w*", "computed, counted, considered"),
    ("metaphor", r"\b(?:hand's breadth|hungry|lazi(?:er|est)|living room|seat|desk)\b", "the field's term"),
    ("but for", r"\bbut for\b", "except"),
)]
_SOURCE = re.compile(r"\.(cc|h|cpp|hpp|c|py|sh|cmake|yaml|yml|md|[158]|go|js)$|CMakeLists\.txt$")
_COMMENT = re.compile(r"(///?.*$|^\s*\*.*$|/\*.*$|#.*$)")
_PROSE = (".md", ".1", ".5", ".8")
# This file has the phrases as patterns, and its test as examples.
_LEFT_OUT = re.compile(r"tools/plain\.py$|plain_test\.py$")


def findings(path, line):
    """[(rule, what was found, what to write instead)] of one line of that file."""
    found = []
    if path.endswith(_PROSE):
        text = line
        if path.endswith(".md") and len(line) > WIDEST:
            found.append(("long line", f"{len(line)} characters", "one sentence a line"))
    else:
        comment = _COMMENT.search(line)
        text = comment[0] if comment else ""
    for name, pattern, remedy in RULES if text else ():
        if match := pattern.search(text):
            found.append((name, match[0].strip(), remedy))
    return found


def tracked(root=ROOT):
    """The files that are looked at without a choice, relative to the root."""
    names = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if _SOURCE.search(name) and not _LEFT_OUT.search(name)]


def lines_of(names, root=ROOT):
    """(file, number, text) of each line."""
    for name in names:
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        yield from ((name, number, line) for number, line in enumerate(text.splitlines(), 1))


def added_since(base, root=ROOT):
    """(file, number, text) of each line that the working tree has and that revision has not."""
    path, number = None, 0
    words = ["git", "diff", "-U0", base, "--"]
    diff = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        elif line.startswith("@@"):
            number = int(re.search(r"\+(\d+)", line)[1]) - 1
        elif line.startswith("+"):
            number += 1
            if path and _SOURCE.search(path) and not _LEFT_OUT.search(path):
                yield path, number, line[1:]


def count(rows, show=None):
    """{rule: how often}; `show` is called with a line of text for each finding."""
    counts = collections.Counter()
    for path, number, line in rows:
        for rule, phrase, remedy in findings(path, line):
            counts[rule] += 1
            if show:
                show(f"{path}:{number}: '{phrase}' -> {remedy}")
    return counts


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--change", metavar="BASE", help="only lines that were added since this git revision")
    parser.add_argument("files", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    root = pathlib.Path.cwd() if arguments.files else ROOT
    rows = added_since(arguments.change) if arguments.change else lines_of(arguments.files or tracked(), root)
    counts = count(rows, print)
    print("; ".join(f"{rule}: {number}" for rule, number in counts.most_common()) or "nothing found")


if __name__ == "__main__":
    main()
