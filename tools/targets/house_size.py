"""Targets of what a newcomer has to read: how many files, how long, in what language, how many bytes."""

import pathlib
import subprocess

import plain

from . import require, target

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = 60  # lines of a file below which it is hardly a subject
MOST_FILES, MOST_LINES, LONGEST = 450, 56_000, 500
MOST_OF_DOCS = 1_200_000  # bytes
MOST_NAMED = 12
RECORDS = ("evaluation/runs/",)


def _tracked():
    """Paths of all tracked files, relative to the root."""
    text = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [name for name in text.split("\0") if name and (ROOT / name).is_file()]


@target("house.7", f"files in src with fewer than {SMALL} lines; at most {MOST_FILES} files, {MOST_LINES:,} lines, "
        f"and {LONGEST} lines in the longest file", "files", at_most=150)
def small_files():
    sizes = {name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in _tracked()
             if name.startswith("src/") and name.endswith((".h", ".cc"))}
    longest = sorted(sizes.items(), key=lambda item: -item[1])[:MOST_NAMED]
    small = sum(lines < SMALL for lines in sizes.values())
    over = {"files": max(0, len(sizes) - MOST_FILES), "lines": max(0, sum(sizes.values()) - MOST_LINES),
            "longest": max(0, longest[0][1] - LONGEST)}
    detail = {"files": len(sizes), "lines": sum(sizes.values()), "over the bounds by": over,
              "longest": [f"{name} {lines}" for name, lines in longest]}
    require(detail, not any(over.values()), f"within the bounds of the detail: over by {over}")
    return small, detail


@target("house.8", "phrases in comments and documents that readers stumble over (python3 -m plain); lines of "
        f"documents over {plain.WIDEST} characters: 0", "findings", at_most=150)
def stumbling_phrases():
    counts = plain.count(plain.lines_of(plain.tracked()))
    long_lines = counts.pop("long line", 0)
    detail = {"long lines": long_lines, **dict(counts.most_common())}
    require(detail, long_lines == 0, f"{long_lines} long lines of documents, none may be")
    return sum(counts.values()), detail


@target("house.10", f"bytes of the tracked files without records of runs; of docs at most {MOST_OF_DOCS:,}", "bytes",
        at_most=8_000_000)
def tracked_bytes():
    sizes = {name: (ROOT / name).stat().st_size for name in _tracked() if not name.startswith(RECORDS)}
    docs = sum(size for name, size in sizes.items() if name.startswith("docs/"))
    total = sum(sizes.values())
    folders = {}
    for name, size in sizes.items():
        folder = name.partition("/")[0] if "/" in name else "."
        folders[folder] = folders.get(folder, 0) + size
    detail = dict(sorted(folders.items(), key=lambda item: -item[1])[:MOST_NAMED])
    require(detail, docs <= MOST_OF_DOCS, f"{docs:,} bytes of docs, {MOST_OF_DOCS:,} may be")
    return total, detail
