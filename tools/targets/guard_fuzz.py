"""Target of the fuzzers: what their corpora reach, and what they find."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

from . import at_least, option, require, target
from ._builds import ROOT, build, dependencies

FUZZERS = pathlib.Path("tests/fuzz")
TABLE = FUZZERS / "floors.yaml"
MINUTES = 5  # for each fuzzer
FAILED = re.compile(r"^(\w+) FAILED: ", re.MULTILINE)
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0"}  # the hunt looks for leaks


def names(root=ROOT):
    """Of all fuzzers."""
    return sorted(path.name.removesuffix("_fuzz.cc") for path in (root / FUZZERS).glob("*_fuzz.cc"))


def read(text, root=ROOT):
    """{fuzzer: {"floor": per cent, "files": [...]}} of the table. ValueError when a fuzzer has no row, or a row names
    no fuzzer, no files, a file that is not there, or a floor out of range. A floor of None was not measured yet."""
    rows = yaml.safe_load(text)
    if wrong := set(rows) ^ set(names(root)):
        raise ValueError(f"not both a fuzzer and a row: {', '.join(sorted(wrong))}")
    for name, row in rows.items():
        if set(row) != {"floor", "files"} or not row["files"]:
            raise ValueError(f"{name}: a row has a floor and files")
        if row["floor"] is not None and (not isinstance(row["floor"], int) or not 1 <= row["floor"] <= 100):
            raise ValueError(f"{name}: the floor is a whole number of per cent, 1 to 100")
        for file in row["files"]:
            if not (root / file).is_file():
                raise ValueError(f"{name}: there is no {file}")
    return rows


def reached(summary, files):
    """Per cent of the regions of these files that were run, of llvm-cov's summary. A file that it does not know counts
    as not reached: RuntimeError."""
    regions = {}
    for each in summary["data"][0]["files"]:
        for file in files:
            if each["filename"] == file or each["filename"].endswith("/" + file):
                regions[file] = each["summary"]["regions"]
    if missing := sorted(set(files) - set(regions)):
        raise RuntimeError(f"no code of {', '.join(missing)} is in the fuzzer")
    return 100 * sum(each["covered"] for each in regions.values()) / sum(each["count"] for each in regions.values())


def coverage(name, files, programs):
    """What the corpus of a fuzzer reaches of these files, per cent."""
    program = programs / f"fuzz_{name}"
    with tempfile.TemporaryDirectory() as folder:
        raw, profile = f"{folder}/raw", f"{folder}/profile"
        subprocess.run([program, "-runs=0", ROOT / FUZZERS / "corpus" / name], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={**os.environ, **SANITIZERS, "LLVM_PROFILE_FILE": raw})
        subprocess.run(["llvm-profdata", "merge", "-o", profile, raw], check=True)
        told = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", program], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    return reached(json.loads(told), files)


def hunt(wanted, minutes):
    """Hunts so long with each fuzzer. Returns the fuzzers with a finding."""
    words = [word for name in wanted for word in ("--only", name)]
    done = subprocess.run([ROOT / "scripts/fuzz", "--minutes", str(minutes), "--each", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = FAILED.findall(done.stdout)
    if done.returncode != 0 and not found:
        raise RuntimeError(f"scripts/fuzz failed: {done.stdout[-1000:]}")
    return sorted(set(found))


def verdict(rows, found, covered):
    """(fuzzers below their floor or with a finding, detail)."""
    below = [name for name, share in covered.items() if share < (rows[name]["floor"] or 0)]
    detail = {"below": sorted(below), "found": found,
              "coverage": {name: [round(share, 1), rows[name]["floor"]] for name, share in covered.items()}}
    unmeasured = [name for name in covered if rows[name]["floor"] is None]
    require(detail, not unmeasured, f"no floor yet: {', '.join(unmeasured)}")
    return len({*below, *found}), detail


@target("guard.5", "fuzzers whose corpus reaches less of their parsers than the floor (tests/fuzz/floors.yaml) or with "
        f"a finding in {MINUTES} minutes each (30 every night)", "fuzzers", at_most=0,
        options=[option("--minutes", at_least(MINUTES), type=int, default=MINUTES,
                        help="for each fuzzer; 0: coverage alone"),
                 option("--only", action="append", default=None, metavar="NAME",
                        help="this fuzzer; may be given several times")])
def fuzzers(minutes, only):
    """The hunt comes first, because it lets the corpora grow."""
    rows = read((ROOT / TABLE).read_text(encoding="utf-8"))
    wanted = only or list(rows)
    if unknown := set(wanted) - set(rows):
        raise ValueError(f"no fuzzer {', '.join(sorted(unknown))}; scripts/fuzz --list has them")
    dependencies("fuzz")
    found = hunt(wanted, minutes) if minutes > 0 else []
    programs = build(ROOT, [f"fuzz_{name}" for name in wanted], preset="fuzz")
    return verdict(rows, found, {name: coverage(name, rows[name]["files"], programs) for name in wanted})
