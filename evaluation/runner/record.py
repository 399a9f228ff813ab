"""The results of the runs behind docs/results.md, which are kept. Running all of them takes many hours of CPU time, so
claims can be checked and added without that."""

import gzip
import json
import os
import pathlib
import re
import shlex
import subprocess
import zlib

from .document import Mistake
from .spec import ROOT

FOLDER = ROOT / "evaluation" / "runs"
# braid-sim GROUP was a program of its own, sim_GROUP, when most of the runs were recorded.
_FORMER_PROGRAM = re.compile(r"^sim_(\w+)")


def commit_of(folder=ROOT):
    """The commit of this checkout, with + if it has changes. The programs are from this commit, unless BRAID_BIN names
    others."""
    done = subprocess.run(["git", "describe", "--always", "--abbrev=12", "--dirty=+"], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() or "unknown"


def _command(recorded):
    """A recorded command line as it is written today."""
    return _FORMER_PROGRAM.sub(r"braid-sim \1", recorded)


def _read(file):
    """(the commit, {command: {"result"}}) of a file."""
    try:
        lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
        if not lines or not all("result" in line and "command" in line for line in lines[1:]):
            raise ValueError("its lines are not those of a record")
        return lines[0]["commit"], {_command(line["command"]): {"result": line["result"]} for line in lines[1:]}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise Mistake(f"{file}: no record of runs: {error}") from None


class Record:
    """A file for each experiment: a line of JSON with the commit, and one for each run. For judging it replaces a
    Store, whatever program made the results."""

    def __init__(self, folder=FOLDER):
        self._folder, self._runs = pathlib.Path(folder), {}

    def _file(self, name):
        return self._folder / f"{name}.json.gz"

    def _of(self, name):
        if name not in self._runs:
            file = self._file(name)
            self._runs[name] = _read(file) if file.exists() else (None, {})
        return self._runs[name]

    def of(self, experiment):
        """The object by which an experiment is judged: load() and has_failed() like a Store, for that experiment's
        runs."""
        return _Runs(self._of(experiment.name)[1])

    def commit(self, name):
        """The commit whose programs have run; None where nothing is recorded."""
        return self._of(name)[0]

    def save(self, name, results, commit):
        """Rewrites the runs of an experiment: {cell: figures}. Leaves the file unchanged when they are the same."""
        runs = {shlex.join(cell.words): result for cell, result in results.items()}
        file = self._file(name)
        try:
            if {command: run["result"] for command, run in _read(file)[1].items()} == runs:
                return
        except Mistake:
            pass  # there is none yet, or it is broken
        lines = [{"experiment": name, "commit": commit}]
        lines += [{"command": command, "result": result} for command, result in runs.items()]
        self._folder.mkdir(parents=True, exist_ok=True)
        whole = file.with_suffix(".new")
        whole.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0))
        os.replace(whole, file)
        self._runs.pop(name, None)


class _Runs:
    def __init__(self, runs):
        self._runs = runs

    def load(self, cell):
        """{"result"} of that run; None where there is none."""
        return self._runs.get(shlex.join(cell.words))

    def has_failed(self, _cell):
        """Runs that failed are never recorded."""
        return False
