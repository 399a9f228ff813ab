"""The figures of the runs behind the pages of docs/evaluation, kept beside these: to run all of them takes many hours
of a processor, and who doubts a claim or makes a new one should not have to wait for them."""

import gzip
import json
import shlex
import subprocess

from .document import Mistake
from .spec import PAGES, ROOT

FOLDER = PAGES / "runs"


def _commit():
    """Of the checkout whose programs have run; with + where it had changes."""
    done = subprocess.run(["git", "describe", "--always", "--abbrev=12", "--dirty=+"], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() or "unknown"


class Record:
    """A file for each experiment: a line of JSON that says of which commit it is, and one for each run. To those that
    judge, it is a store of what was run, by whatever program."""

    def __init__(self, folder=FOLDER):
        self._folder, self._runs = folder, {}
        for file in sorted(folder.glob("*.json.gz")):
            try:
                for line in gzip.decompress(file.read_bytes()).decode().splitlines()[1:]:
                    run = json.loads(line)
                    self._runs[run["command"]] = {"result": run["result"]}
            except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
                raise Mistake(f"{file}: no record of runs: {error}") from None

    def load(self, cell):
        """{"result"} of that run; None where there is none."""
        return self._runs.get(shlex.join(cell.words))

    def has_failed(self, _cell):
        """Runs that failed are never recorded."""
        return False

    def save(self, name, results):
        """Writes the runs of an experiment anew: {cell: figures}. The same figures make the same file."""
        lines = [{"experiment": name, "commit": _commit()}]
        lines += [{"command": shlex.join(cell.words), "result": result} for cell, result in results.items()]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
