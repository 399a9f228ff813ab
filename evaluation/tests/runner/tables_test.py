"""Tables, plots, and the summary of all claims and figures."""

import dataclasses
import importlib.util
import unittest
from types import SimpleNamespace

from example import TEXT, Case
from runner import judge, tables
from runner.grid import cells_of
from runner.outcome import Outcome

FIGURES = {("fuso", "6a"): "tails", ("fuso", "6b"): "late", ("fuso", "7"): "both", ("fuso", "abstract"): "much",
           ("fuso", "abstract-more"): "more"}


def made_up(experiment, grid, **more):
    """An outcome without runs: figures that differ by variant, point and seed, and `more` of each run."""
    results = {}
    for cell in cells_of(experiment, grid):
        p99 = (1 if cell.variant == "fuso" else 4) * (1 + cell.seed / 10) * 1e-3
        results[experiment.name, cell] = {"p99": p99, "late": [1], "queue": {"max": cell.seed}, **more}
    return Outcome(experiment, grid, results)


class Tables(Case):
    def setUp(self):
        super().setUp()
        self.experiment = self.load()
        self.outcome = made_up(self.experiment, self.experiment.full)

    def test_numbers(self):
        self.assertEqual([tables.shown(value) for value in (0, 0.012345, 1.2345, 123.45, 999.7, 12345.6, float("nan"))],
                         ["0", "0.0123", "1.23", "123", "1000", "12346", "–"])

    def test_claims(self):
        text = tables.block(self.outcome)
        self.assertIn("| 6a | largest p99, ms | at most 2.4 | 1.3 | 1.1 to 1.5 | 0.542 | met |  |", text)
        self.assertIn("| abstract | least p99 against none at the edge | up to 82 %; judged: at least 0.823 | 0.75 | "
                      "0.75 to 0.75 | – | **missed** | other timers |", text)

        self.assertIn("\nWhy ours differ: other sizes.\n", text)

    def test_how_much_a_claim_may_miss(self):
        near = self.load(TEXT.replace("paper: 2.4, relation: at most", "paper: 1, relation: about, within: 0.35"))
        self.assertIn("| about 1 (± 35%) | 1.3 |", tables.block(made_up(near, near.full)))
        self.assertTrue(made_up(near, near.full).verdict(near.claims[0]).met)
        tight = self.load(TEXT.replace("paper: 2.4, relation: at most", "paper: 1, relation: at most, within: 0.2"))
        self.assertIn("| at most 1 (+ 20%) | 1.3 |", tables.block(made_up(tight, tight.full)))
        self.assertFalse(made_up(tight, tight.full).verdict(tight.claims[0]).met)

    def test_reports_have_intervals_and_paired_ratios(self):
        self.assertIn("| 0.10 | edge | 5.2 ± 0.79 | 1.3 ± 0.2 (0.25 ± 0) |", tables.block(self.outcome))

    def test_flows_that_did_not_end_are_told(self):
        self.assertNotIn("had not ended", tables.block(self.outcome))
        for more in ({"incomplete": 2}, {"short": {"incomplete": 2}}):
            runs = len(list(cells_of(self.experiment, self.experiment.full))) // 2
            text = tables.block(made_up(self.experiment, self.experiment.full, **more))
            self.assertIn(f"count with the time that they had: none {2 * runs}, fuso {2 * runs}.\n", text)

    def test_a_reduced_grid_says_so(self):
        self.assertNotIn("reduced", tables.block(self.outcome))
        text = tables.block(made_up(self.experiment, self.experiment.quick), quick=True)
        self.assertIn("The reduced grid, not the paper's scale: 2 seeds, flows 10;", text)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib (scripts/deps experiments)")
    def test_the_same_figures_make_the_same_plot(self):
        from runner import draw
        first, second = self.folder / "a.svg", self.folder / "b.svg"
        draw.reports(self.outcome, first)
        draw.reports(made_up(self.experiment, self.experiment.full), second)
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertIn(b"p99 of the time", first.read_bytes())

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib (scripts/deps experiments)")
    def test_a_plot_has_as_many_reports_as_can_be_read_those_of_figures_first(self):
        from runner import draw
        reports = {name: SimpleNamespace(name=name, figures=figures)
                   for name, figures in (("a", []), ("b", ["1"]), ("c", []), ("d", ["2"]))}
        experiment = SimpleNamespace(reports=reports)

        def names(columns):
            return [report.name for report in draw.drawn(experiment, columns)]
        self.assertEqual(names(1), ["a", "b", "c", "d"])
        self.assertEqual(names(draw.MOST_PANELS // 3), ["a", "b", "d"])
        self.assertEqual(names(draw.MOST_PANELS // 2), ["b", "d"])
        self.assertEqual(names(10 * draw.MOST_PANELS), ["b"])


class Judged(Case):
    def setUp(self):
        super().setUp()
        experiment = self.load()
        self.experiments = {"two-ways": experiment}
        self.known = {"two-ways": made_up(experiment, experiment.full)}

    def test_a_figure_without_a_claim_is_not_met(self):
        found = judge.claims(self.experiments, FIGURES, self.known)
        self.assertEqual(found["without a claim"], ["fuso 6b: late", "fuso 7: both", "fuso abstract-more: more"])
        self.assertEqual((found["met"], found["all"], found["share"]), (1, 5, 0.2))
        tail = found["claims"][0]
        self.assertEqual((tail["claim"], tail["met"], tail["seeds"]), ("tail", True, 5))
        self.assertAlmostEqual(tail["value"], 1.3)

    def test_what_is_an_input_of_our_models_is_not_counted(self):
        """A claim about an input counts neither as met nor as missed, but its figure counts as having a claim."""
        for said, shown in (("paper: 2.4", "| met |"), ("paper: 0.1", "| **missed** |")):
            experiment = self.load(TEXT.replace("paper: 2.4", f"{said}, input: yes"))
            outcome = made_up(experiment, experiment.full)
            found = judge.claims({"two-ways": experiment}, FIGURES, {"two-ways": outcome})
            with self.subTest(said):
                self.assertEqual((found["met"], found["all"]), (0, 4))
                self.assertEqual([entry["claim"] for entry in found["claims"]], ["gain"])
                self.assertEqual([entry["claim"] for entry in found["inputs"]], ["tail"])
                self.assertNotIn("fuso 6a: tails", found["without a claim"])
                line = next(line for line in tables.block(outcome).splitlines() if "largest p99" in line)
                self.assertIn("| an input", line)
                self.assertNotIn(shown, line)

    def test_what_was_not_measured_is_not_met(self):
        found = judge.claims(self.experiments, FIGURES, {})
        self.assertEqual(found["met"], 0)
        self.assertEqual(found["claims"][0]["missing"], "it was not measured")

    def lacking(self, known):
        return {entry["figure"]: entry["lacks"] for entry in judge.coverage(self.experiments, FIGURES, known)}

    def test_coverage(self):
        self.assertEqual(self.lacking(self.known), {"fuso 7": "an experiment"})
        self.assertEqual(self.lacking({}), {"fuso 6a": "a number", "fuso 6b": "a number", "fuso 7": "an experiment"})

    def test_too_few_seeds_are_no_interval(self):
        experiment = self.experiments["two-ways"]
        few = made_up(experiment, dataclasses.replace(experiment.full, seeds=4))
        self.assertEqual(self.lacking({"two-ways": few})["fuso 6a"], "an interval")

    def test_ratios_are_those_of_pairs(self):
        """Each report that names a variant, at each point; made_up() has `fuso` at a quarter of `none`."""
        found = judge.ratios(self.experiments, self.known)
        self.assertEqual({(each["report"], each["variant"], each["against"], each["ratio"], each["interval"])
                          for each in found}, {("p99", "fuso", "none", 0.25, 0.0)})
        self.assertEqual([each["point"] for each in found],
                         [{"loss": loss, "where": where} for loss in ("0.01", "0.10") for where in ("inside", "edge")])
        self.assertEqual({each["seeds"] for each in found}, {5})
        self.assertEqual(judge.ratios(self.experiments, {}), [])


if __name__ == "__main__":
    unittest.main()
