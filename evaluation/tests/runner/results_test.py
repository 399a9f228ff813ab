"""docs/results.md and its plots are those of the recorded runs."""

import dataclasses
import importlib.util
import re
import unittest

from example import TEXT, Case
from tables_test import made_up
from runner import judge, results, spec
from runner.document import Mistake
from runner.record import Record

HEADLINE = "headline: {report: p99, at: {loss: 0.10}}\nclaims:"
STALE = "`evaluation/run results --write` makes it anew"


class Committed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.experiments = spec.load_all()
        cls.outcomes = judge.outcomes(cls.experiments, Record())

    def test_every_experiment_is_recorded(self):
        self.assertEqual(self.outcomes.keys(), self.experiments.keys())

    def test_the_page_says_what_the_recorded_runs_do(self):
        page = results.page(self.outcomes, spec.load_figures())
        self.assertEqual(results.PAGE.read_text(encoding="utf-8"), page, STALE)
        self.assertLessEqual(len(page.splitlines()), results.MOST_LINES)
        self.assertLessEqual(max(map(len, page.splitlines())), results.WIDEST)

    def test_the_page_has_every_claim(self):
        page = results.PAGE.read_text(encoding="utf-8")
        counted = [tuple(map(int, each)) for each in re.findall(r"^## .*: (\d+) of (\d+) met$", page, re.MULTILINE)]
        found = judge.claims(self.experiments, spec.load_figures(), self.outcomes)
        self.assertEqual(tuple(map(sum, zip(*counted))), (found["met"], found["all"]))
        for claim in (claim for each in self.experiments.values() for claim in each.claims if not claim.input):
            for part in claim.what.split(", "):
                self.assertIn(part, page)

    def test_each_experiment_is_described_in_the_page_of_its_paper(self):
        for name, experiment in self.experiments.items():
            page = (spec.ROOT / "evaluation" / f"{experiment.paper}.md").read_text(encoding="utf-8")
            self.assertIn(f"`{name}`", page)

    def test_each_paper_has_its_plot_of_these_runs_and_no_other_is_kept(self):
        plots = {path.stem: path.read_text(encoding="utf-8") for path in results.PLOTS.iterdir()}
        headlines = results.headlines(self.outcomes)
        self.assertEqual(plots.keys(), headlines.keys())
        self.assertLessEqual(len(plots), 6)
        for paper, outcome in headlines.items():
            with self.subTest(paper):
                self.assertIn(f">{results.fingerprint(outcome)}<", plots[paper], STALE)
                self.assertLess(len(plots[paper]), 40_000)


class Page(Case):
    def setUp(self):
        super().setUp()
        self.experiment = self.load(TEXT.replace("claims:", HEADLINE, 1))
        self.outcome = made_up(self.experiment, self.experiment.full)

    def test_claims_that_differ_in_one_part_share_a_line(self):
        claim = self.experiment.claims[0]
        verdicts = [self.outcome.verdict(dataclasses.replace(claim, what=what)) for what in
                    ("web, Reno, the mean", "web, CUBIC, the mean", "mining, Reno, the mean", "all", "none")]
        groups = [[each.claim.what for each in group] for group in results._grouped(verdicts)]
        self.assertEqual(groups, [["web, Reno, the mean", "web, CUBIC, the mean"], ["mining, Reno, the mean"], ["all"],
                                  ["none"]])
        line = results._line(verdicts[:2])
        self.assertEqual(line[1], "web, the mean: Reno; CUBIC, ms")
        self.assertEqual(line[2:], ("at most 2.4", "1.3", "1.1 to 1.5", "met"))

    def test_each_has_its_number_and_its_verdict(self):
        claim = self.experiment.claims[0]
        verdicts = [self.outcome.verdict(dataclasses.replace(claim, what=f"web, {name}", limit=limit, paper=str(limit)))
                    for name, limit in (("Reno", 2.4), ("CUBIC", 0.5))]
        self.assertEqual(results._line(verdicts)[2:],
                         ("at most 2.4; at most 0.5", "1.3", "1.1 to 1.5", "met; **missed**"))

    def test_a_paper_without_a_headline_is_a_mistake(self):
        with self.assertRaisesRegex(Mistake, "no recorded experiment with a headline of cofuso"):
            results.headlines({"two-ways": self.outcome})

    def test_other_numbers_have_another_fingerprint(self):
        again, other = (made_up(self.load(TEXT.replace("claims:", HEADLINE, 1).replace("p99 * 1000", value)),
                                self.experiment.full) for value in ("p99 * 1000", "p99 * 1001"))
        self.assertEqual(results.fingerprint(again), results.fingerprint(self.outcome))
        self.assertNotEqual(results.fingerprint(other), results.fingerprint(self.outcome))

    def test_a_headline_names_a_report_and_labels_that_are_there(self):
        for wrong, said in (("report: p98", "names no report: p98"), ("report: p99, at: {loss: 0.5}", "has 0.5")):
            with self.subTest(wrong), self.assertRaisesRegex(Mistake, said):
                self.load(TEXT.replace("claims:", f"headline: {{{wrong}}}\nclaims:", 1))

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib (scripts/deps experiments)")
    def test_a_headline_is_drawn_where_it_says_and_is_small(self):
        from runner import draw
        path = self.folder / "plots" / "fuso.svg"
        draw.headline(self.outcome, path, "a mark")
        text = path.read_text(encoding="utf-8")
        self.assertIn("<dc:description>a mark</dc:description>", text)
        self.assertIn(">edge<", text)
        self.assertNotIn("late flows", text)
        draw.headline(self.outcome, path, "a mark")
        self.assertEqual(path.read_text(encoding="utf-8"), text)
        limit = draw.LARGEST_HEADLINE
        try:
            draw.LARGEST_HEADLINE = 100
            with self.assertRaisesRegex(Mistake, "draw fewer points"):
                draw.headline(self.outcome, path, "a mark")
        finally:
            draw.LARGEST_HEADLINE = limit


if __name__ == "__main__":
    unittest.main()
