"""Runs one experiment from end to end, and checks that programs accept the command lines of all. Needs the programs."""

import contextlib
import io
import pathlib
import subprocess
import tempfile
import unittest

from runner import spec
from runner.grid import cells_of, grid_of
from runner.outcome import Outcome
from runner.tables import block
from runner.runs import Store, run_all
from lab import binary

EXPERIMENTS = spec.load_all()
SHORT = "cofuso-9a"  # the experiment that runs: seconds for all of it


class Smoke(unittest.TestCase):
    def test_programs_know_the_options(self):
        known = {}
        for experiment in EXPERIMENTS.values():
            for cell in cells_of(experiment, grid_of(experiment, quick=True)):
                program, group, name, *words = cell.words
                if group not in known:
                    known[group] = subprocess.run([binary(program), group, "--help"], stdout=subprocess.PIPE, text=True,
                                                  check=True).stdout
                with self.subTest(experiment.name, words=words):
                    self.assertRegex(known[group], rf"\n +{name}: ")
                    for option in words:
                        if option.startswith("--"):
                            self.assertRegex(known[group], rf"\n +{option}\b", experiment.name)

    def test_an_experiment_runs(self):
        experiment = EXPERIMENTS[SHORT]
        grid = grid_of(experiment, quick=True, seeds=2)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            results = run_all([(experiment, cell) for cell in cells_of(experiment, grid)],
                              Store(pathlib.Path(folder)), 2)
        outcome = Outcome(experiment, grid, results)
        self.assertEqual(outcome.failures, [])
        self.assertIn("2 seeds", block(outcome))
        self.assertTrue(all(outcome.verdict(claim).sample.defined for claim in experiment.claims))


if __name__ == "__main__":
    unittest.main()
