"""Runs one experiment from end to end, and checks that programs accept the command lines of all. Needs the programs."""

import contextlib
import io
import pathlib
import subprocess
import tempfile
import unittest

from experiments import spec
from experiments.grid import cells_of, grid_of
from experiments.outcome import Outcome
from experiments.pages import block
from experiments.runner import Store, run_all
from lab import binary

EXPERIMENTS = spec.load_all()
SHORT = "cofuso-9a"  # the experiment that runs: seconds for all of it


class Smoke(unittest.TestCase):
    def test_programs_know_the_options(self):
        known = {}
        for experiment in EXPERIMENTS.values():
            for cell in cells_of(experiment, grid_of(experiment, quick=True)):
                program, name, *words = cell.words
                if program not in known:
                    known[program] = subprocess.run([binary(program), "--help"], stdout=subprocess.PIPE, text=True,
                                                    check=True).stdout
                with self.subTest(experiment.name, words=words):
                    self.assertRegex(known[program], rf"\n +{name}: ")
                    for option in words:
                        if option.startswith("--"):
                            self.assertRegex(known[program], rf"\n +{option}\b", experiment.name)

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
