"""Target of the second implementation of docs/protocol.md (tests/second), which checks and attacks a real daemon."""

import json
import os
import subprocess

from lab import binary

from . import option, require, target
from ._builds import ROOT

LEAST = 120  # checks that count
DEBIAN_PYTHON = "/usr/bin/python3"  # has Debian's modules
PATIENCE = 1800  # seconds


def environment():
    """In which the package `second` is found."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'tools'}:{ROOT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1",
            "BRAID_BIN": os.path.dirname(binary("braidd"))}


def run(*words):
    """What the checks told: {"checks": number, "failed": {id: why}}. RuntimeError when they told nothing."""
    done = subprocess.run([DEBIAN_PYTHON, "-m", "second", *words], env=environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"the checks ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


@target("guard.3", "checks of the second implementation of the protocol (tests/second.yaml), at least 120, that fail",
        "checks", at_most=0, programs=["braidd", "braidctl"],
        options=[option("--only", metavar="WORD", help="those with this word in their id")])
def second(only):
    """Every check, once."""
    detail = run(*(["--only", only] if only else []))
    require(detail, detail["checks"] >= LEAST, f"{detail['checks']} of at least {LEAST} checks")
    return len(detail["failed"]), detail
