"""Checks the files of evaluation/experiments without running anything: each is valid and refers to listed figures."""

import unittest
from unittest import mock

from runner import spec
from runner.grid import cells_of, grid_of, series_cell
from runner.outcome import Outcome

EXPERIMENTS = spec.load_all()


def made_up(experiment, quick):
    """An outcome in which each report is 1 + seed / 10 everywhere."""
    grid = grid_of(experiment, quick)
    results = {(experiment.name, cell): {"seed": cell.seed} for cell in cells_of(experiment, grid)}
    with mock.patch("runner.outcome.of_a_run", lambda formula, result: 1 + result["seed"] / 10):
        return Outcome(experiment, grid, results)


class Files(unittest.TestCase):
    def test_there_are_some_of_each_paper(self):
        self.assertLessEqual({"fuso", "cofuso", "amp", "tracks"}, {each.paper for each in EXPERIMENTS.values()})

    def test_every_claim_can_be_judged(self):
        for experiment in EXPERIMENTS.values():
            full, quick = made_up(experiment, False), made_up(experiment, True)
            for claim in experiment.claims:
                with self.subTest(f"{experiment.name}: {claim.name}"):
                    self.assertTrue(full.verdict(claim).sample.defined)
                    quick.verdict(claim)

    def test_the_reduced_grid_is_smaller(self):
        for experiment in EXPERIMENTS.values():
            with self.subTest(experiment.name):
                full, quick = (sum(1 for _ in cells_of(experiment, grid))
                               for grid in (experiment.full, experiment.quick))
                self.assertTrue(quick < full or experiment.quick == experiment.full)

    def test_cells_differ_and_series_have_theirs(self):
        for experiment in EXPERIMENTS.values():
            with self.subTest(experiment.name):
                words = [cell.words for cell in cells_of(experiment, experiment.full)]
                self.assertEqual(len(words), len(set(words)))
                if experiment.series:
                    self.assertLessEqual(set(experiment.series.queues), set(experiment.series.subflows))
                    self.assertTrue(series_cell(experiment).series)

    def test_figures_are_listed(self):
        figures = spec.load_figures()
        self.assertGreater(len(figures), 50)
        for experiment in EXPERIMENTS.values():
            self.assertLessEqual(experiment.figures(), figures.keys(), experiment.name)

    def test_a_shim_that_causes_timeouts_where_there_were_none_is_seen(self):
        """At one point 0 and 2 timeouts in two seeds, with the shim 3 and 0; elsewhere it saves three of four."""
        experiment, odd = EXPERIMENTS["tracks-11"], ("droptail", "0.3")
        grid, results = grid_of(experiment, seeds=2), {}
        for cell in cells_of(experiment, grid):
            many = {"off": (4, 4), "shim": (1, 1)} if cell.point[1:] != odd else {"off": (0, 2), "shim": (3, 0)}
            figures = dict.fromkeys(("mean_small", "mean_all", "p50_small", "p50_all", "p99_small", "p99_all"), 1)
            results[experiment.name, cell] = {**figures, "flows": 100,
                                              "timeouts": many.get(cell.variant, (0, 0))[cell.seed - 1]}
        outcome = Outcome(experiment, grid, results)
        verdicts = [outcome.verdict(claim) for claim in experiment.claims if claim.name.startswith("timeouts-")]
        self.assertEqual([(verdict.sample.mean, verdict.met) for verdict in verdicts], [(0.5, False)] * 2)

    def test_the_tail_of_the_whole_is_told_everywhere(self):
        """eval.2 and eval.5 take it from there, and would leave out an experiment without."""
        for experiment in EXPERIMENTS.values():
            if {"adaptive", "together"} & experiment.variants.keys():
                self.assertIn("p99", experiment.reports, experiment.name)

    def test_what_the_shim_costs_is_told_everywhere(self):
        """eval.6 takes it from there."""
        for experiment in (each for each in EXPERIMENTS.values() if each.paper == "tracks"):
            for share in ("p50", "p99"):
                self.assertEqual(experiment.reports[share].against, "off", f"{experiment.name}: {share}")


if __name__ == "__main__":
    unittest.main()
