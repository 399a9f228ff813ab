"""The runs of an experiment."""

import unittest

from example import TEXT, Case
from runner.grid import cells_of, grid_of, series_cell

OVER_TIME = """\
series:
  title: the first round
  variant: fuso
  at: {loss: 0.10, where: edge}
  settings: {flows: 1}
  interval: 0.01
  unit: ms
  subflows: {path0: upper, path1: lower}
  queues: {path0: the port}
"""


class Cells(Case):
    def test_each_variant_at_each_point_with_each_seed(self):
        experiment = self.load()
        cells = list(cells_of(experiment, grid_of(experiment)))
        self.assertEqual(len(cells), len(set(cells)))
        self.assertEqual(len(cells), 2 * 2 * 2 * 5)
        self.assertEqual([cell.seed for cell in cells], sorted(cell.seed for cell in cells))
        self.assertEqual({cell.point for cell in cells}, {(loss, where) for loss in ("0.01", "0.10")
                                                          for where in ("inside", "edge")})

    def test_command_line(self):
        experiment = self.load()
        words = {(cell.variant, cell.point, cell.seed): cell.words for cell in cells_of(experiment,
                                                                                        grid_of(experiment))}
        self.assertEqual(words["fuso", ("0.10", "edge"), 3],
                         ("program", "--policy", "fuso", "--loss", "0.10", "--edge", "--flows", "100", "--seed", "3"))
        self.assertNotIn("--edge", words["none", ("0.01", "inside"), 1])

    def test_quick(self):
        experiment = self.load()
        cells = list(cells_of(experiment, grid_of(experiment, quick=True)))
        self.assertEqual(len(cells), 1 * 2 * 2 * 2)
        self.assertEqual(cells[0].words, ("program", "--policy", "none", "--loss", "0.10", "--flows", "10", "--seed",
                                          "1"))

    def test_other_number_of_seeds(self):
        experiment = self.load()
        self.assertEqual({cell.seed for cell in cells_of(experiment, grid_of(experiment, True, 3))}, {1, 2, 3})

    def test_without_axes_there_is_one_point(self):
        text = TEXT.replace("axes:\n  loss: [0.01, 0.10]\n  where: {inside: \"\", edge: --edge}\n", "").replace(
            "--loss {loss} {where} ", "").replace("  axes: {loss: [0.10]}\n", "")
        experiment = self.load(text.partition("claims:")[0])
        self.assertEqual({cell.point for cell in cells_of(experiment, experiment.full)}, {()})

    def test_the_run_that_is_drawn_over_time(self):
        cell = series_cell(self.load(TEXT + OVER_TIME))
        self.assertEqual(cell.words, ("program", "--policy", "fuso", "--loss", "0.10", "--edge", "--flows", "1",
                                      "--seed", "1", "--interval", "0.01"))
        self.assertTrue(cell.series)


if __name__ == "__main__":
    unittest.main()
