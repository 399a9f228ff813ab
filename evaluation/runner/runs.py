"""Runs cells on several cores and stores their output."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from statistics import fmean

from lab import binary

from .spec import ROOT

DATA = ROOT / "evaluation" / "data"


class Failure(Exception):
    """A run without results, and the reason."""


class Store:
    """The output of runs, stored in a folder. The key of a run is the hash of its command line, of its program and of
    the files in `data` that programs read. After a change of these it has to run again."""

    def __init__(self, folder, data=DATA):
        self.folder = pathlib.Path(folder)
        self._data, self._programs = data, {}

    def _program(self, name):
        if name not in self._programs:
            files = [pathlib.Path(binary(name)), *sorted(self._data.iterdir())]
            digests = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)
            self._programs[name] = hashlib.sha256(digests).hexdigest()
        return self._programs[name]

    def key(self, cell):
        """The name under which a cell's figures are kept."""
        text = "\0".join([self._program(cell.words[0]), *cell.words, *(["--series"] if cell.series else [])])
        return hashlib.sha256(text.encode()).hexdigest()

    def series(self, cell):
        """Where a cell's figures over time are kept."""
        return self.folder / f"{self.key(cell)}.series"

    def of(self, _experiment):
        """The object by which an experiment is judged; here all runs are in one place."""
        return self

    def load(self, cell):
        """{"result", "seconds"} of an earlier run; None when there was none."""
        try:
            path = self.folder / f"{self.key(cell)}.json"
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return None if cell.series and not self.series(cell).exists() else kept

    def fail(self, cell):
        """Records that this run has failed, until it succeeds."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.key(cell)}.failed").touch()

    def has_failed(self, cell):
        """True when its last run failed."""
        try:
            return (self.folder / f"{self.key(cell)}.failed").exists()
        except FileNotFoundError:  # its program is not built
            return False

    def save(self, cell, result, seconds):
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"command": shlex.join(cell.words), "seconds": seconds, "result": result}
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False, encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(file.name, self.folder / f"{self.key(cell)}.json")
        (self.folder / f"{self.key(cell)}.failed").unlink(missing_ok=True)


def _reason(status, limit, errors):
    if status == -signal.SIGXCPU or status == -signal.SIGKILL:
        return f"took more than {limit:g} s of a core"
    what = f"ended by signal {-status}" if status < 0 else f"exit status {status}"
    return f"{what}: {errors.strip()[-500:] or 'nothing on stderr'}"


def run_cell(cell, limit, series=None):
    """Runs a cell. Returns (its results, CPU seconds). `limit`: most CPU seconds; time in which the process is frozen
    does not count. Raises Failure."""
    words = [binary(cell.words[0]), *cell.words[1:], *(["--series", series] if cell.series else [])]
    began = time.monotonic()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        most = max(1, round(limit))
        try:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (most, most + 1))
        except ProcessLookupError:
            pass  # it is over
        out, errors = process.communicate()
    if process.returncode != 0:
        raise Failure(_reason(process.returncode, limit, errors))
    try:
        result = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failure(f"printed no JSON: {out.strip()[-200:] or 'nothing at all'}") from None
    if not isinstance(result, dict):
        raise Failure(f"printed no JSON object but {out.strip()[-200:]}")
    return result, time.monotonic() - began


class _Progress:
    """Shows progress on stderr: what is done, and how long the rest will take, estimated from earlier runs."""

    INTERVAL = 10  # s between lines, where they do not replace each other

    def __init__(self, jobs, seconds):
        self._jobs, self._left, self._all = jobs, {}, 0
        self._seconds = seconds  # {experiment: [seconds of its runs]}
        self._shown = 0.0

    def expect(self, name):
        self._left[name] = self._left.get(name, 0) + 1
        self._all += 1

    def done(self, name, seconds):
        self._left[name] -= 1
        if seconds is not None:
            self._seconds.setdefault(name, []).append(seconds)
        left, now = sum(self._left.values()), time.monotonic()
        replaces = sys.stderr.isatty()
        if left and not replaces and now - self._shown < self.INTERVAL:
            return
        self._shown = now
        known = [value for values in self._seconds.values() for value in values]
        usual = fmean(known) if known else 0
        rest = sum(count * (fmean(self._seconds[each]) if self._seconds.get(each) else usual)
                   for each, count in self._left.items()) / self._jobs
        line = f"{self._all - left} of {self._all} runs, about {rest / 60:.0f} min left, {name}"
        print(f"\r\033[K{line}" if replaces else line, end="" if replaces and left else "\n", file=sys.stderr,
              flush=True)


def run_all(wanted, store, jobs):
    """Runs those of [(experiment, cell)] whose results are not in the store. Returns {(experiment name, cell): figures
    or Failure}."""
    outcome, missing, seconds = {}, [], {}
    for experiment, cell in wanted:
        kept = store.load(cell)
        if kept is None:
            missing.append((experiment, cell))
        else:
            outcome[experiment.name, cell] = kept["result"]
            seconds.setdefault(experiment.name, []).append(kept["seconds"])
    progress = _Progress(jobs, seconds)

    def one(experiment, cell):
        store.folder.mkdir(parents=True, exist_ok=True)
        result, took = run_cell(cell, experiment.limit, store.series(cell) if cell.series else None)
        store.save(cell, result, took)
        return result, took

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        pending = {}
        for experiment, cell in missing:
            progress.expect(experiment.name)
            pending[pool.submit(one, experiment, cell)] = experiment, cell
        try:
            for future in concurrent.futures.as_completed(pending):
                experiment, cell = pending[future]
                try:
                    outcome[experiment.name, cell], took = future.result()
                except Failure as failure:
                    store.fail(cell)
                    outcome[experiment.name, cell], took = failure, None
                progress.done(experiment.name, took)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return outcome


def kept(wanted, store):
    """The results of earlier runs: {(experiment name, cell): figures}."""
    found = {}
    for experiment, cell in wanted:
        try:
            entry = store.load(cell)
        except FileNotFoundError:  # its program is not built
            continue
        if entry is not None:
            found[experiment.name, cell] = entry["result"]
    return found
