"""How the results of two programs become differences, and these a table."""

import math
import unittest

from crosscheck.cases import CASES, EXPLAINED, Case
from crosscheck.compare import compare, difference, flow_by_flow, reason_for
from crosscheck.table import BEGIN, END, alone, lines, written

LOSSY = Case("lossy path, newreno, 1.0%", "lossy-path", ("--loss", 0.01), ("goodput_mbps",))
CUBIC = Case("lossy path, cubic, 1.0%", "lossy-path", ("--control", "cubic"), ("goodput_mbps",))
TREE = Case("permutation, dctcp", "permutation", ("--control", "dctcp"), ("mean", "jain"))
WHY = {("lossy path, cubic", "goodput_mbps"): "another CUBIC"}


def lossy(*goodputs, timeouts=0):
    return [{"experiment": "lossy-path", "seed": seed, "control": "newreno", "goodput_mbps": goodput,
             "timeouts": timeouts} for seed, goodput in enumerate(goodputs, 1)]


def tree(*goodputs):
    mean = sum(goodputs) / len(goodputs)
    return {"experiment": "permutation", "goodput_mbps": list(goodputs), "mean": mean, "jain": 1.0, "timeouts": 1}


class Cases(unittest.TestCase):
    def test_names_are_different(self):
        self.assertEqual(len({case.name for case in CASES}), len(CASES))

    def test_every_scenario_is_there(self):
        self.assertEqual({case.scenario for case in CASES}, {"lossy-path", "dctcp-queue", "incast", "permutation"})

    def test_a_run_has_its_seed_and_its_paths(self):
        self.assertEqual(LOSSY.command(3), ["lossy-path", "--loss", "0.01", "--seed", "3"])
        self.assertEqual(TREE.command(1, "ways.json")[-2:], ["--paths", "ways.json"])
        self.assertTrue(TREE.has_paths)
        self.assertFalse(LOSSY.has_paths)

    def test_what_is_explained_is_compared(self):
        for beginning, key in EXPLAINED:
            with self.subTest(beginning):
                self.assertTrue(any(reason_for(case, key) for case in CASES
                                    if key in case.keys and case.name.startswith(beginning)))


class Differences(unittest.TestCase):
    def test_are_shares_of_theirs(self):
        self.assertAlmostEqual(difference(11, 10), 0.1)
        self.assertAlmostEqual(difference(9, 10), -0.1)
        self.assertEqual(difference(0, 0), 0)
        self.assertEqual(difference(1, 0), math.inf)

    def test_are_of_the_means_and_the_worst_counts_whichever_its_sign(self):
        result = compare([LOSSY, TREE], {LOSSY.name: lossy(8, 10), TREE.name: [tree(10, 10)]},
                         {LOSSY.name: lossy(12, 8), TREE.name: [tree(8, 12)]}, {})
        pair = result["pairs"][0]
        self.assertEqual((pair["ours"], pair["ns3"], pair["figure"]), (9, 10, "goodput_mbps"))
        self.assertEqual((pair["ours_range"], pair["ns3_range"]), ([8, 10], [8, 12]))
        self.assertAlmostEqual(result["worst"], 0.1)
        self.assertEqual([each["figure"] for each in result["pairs"]], ["goodput_mbps", "mean", "jain"])

    def test_what_is_explained_is_shown_and_does_not_count(self):
        ours, theirs = {CUBIC.name: lossy(20)}, {CUBIC.name: lossy(10)}
        self.assertEqual(compare([CUBIC], ours, theirs, {})["worst"], 1)
        result = compare([CUBIC], ours, theirs, WHY)
        self.assertIsNone(result["worst"])
        self.assertEqual((result["pairs"][0]["difference"], result["pairs"][0]["explained"]), (1, "another CUBIC"))

    def test_a_reason_is_for_its_case_and_figure_alone(self):
        self.assertEqual(reason_for(CUBIC, "goodput_mbps", WHY), "another CUBIC")
        self.assertIsNone(reason_for(LOSSY, "goodput_mbps", WHY))
        self.assertIsNone(reason_for(CUBIC, "timeouts", WHY))

    def test_timeouts_and_single_flows_are_told_apart(self):
        result = compare([TREE], {TREE.name: [tree(10, 10), tree(12, 8)]}, {TREE.name: [tree(8, 12), tree(12, 8)]}, {})
        self.assertEqual(result["worst"], 0)
        self.assertAlmostEqual(result["flow_by_flow"][TREE.name], 0.1)
        self.assertEqual(result["timeouts"][TREE.name], [2, 2])
        self.assertEqual(flow_by_flow([tree(5, 5)], [tree(5, 5)]), 0)

    def test_both_have_as_many_runs(self):
        with self.assertRaises(ValueError):
            compare([LOSSY], {LOSSY.name: lossy(1, 2)}, {LOSSY.name: lossy(1)})
        with self.assertRaises(ValueError):
            compare([LOSSY], {LOSSY.name: []}, {LOSSY.name: []})

    def test_a_figure_that_one_does_not_have_is_no_zero(self):
        with self.assertRaises(KeyError):
            compare([LOSSY], {LOSSY.name: [{"seed": 1}]}, {LOSSY.name: lossy(1)})

    def test_flows_that_never_end_are_no_result(self):
        with self.assertRaises(ValueError):
            compare([LOSSY], {LOSSY.name: lossy(1)}, {LOSSY.name: [{**lossy(1)[0], "incomplete": 1}]})


class Table(unittest.TestCase):
    RESULT = compare([LOSSY, CUBIC], {LOSSY.name: lossy(9), CUBIC.name: lossy(2000)},
                     {LOSSY.name: lossy(10), CUBIC.name: lossy(1000)}, WHY)

    def test_has_a_line_for_each_pair(self):
        self.assertEqual(list(lines(self.RESULT))[2:], [
            "| lossy path, newreno, 1.0% | goodput_mbps | 9 | 10 | -10.0% |",
            "| lossy path, cubic, 1.0% | goodput_mbps | 2,000 | 1,000 | +100.0%, explained: another CUBIC |"])

    def test_of_one_program(self):
        self.assertEqual(list(alone([LOSSY], {LOSSY.name: lossy(8, 12, timeouts=2)}))[2:],
                         ["| lossy path, newreno, 1.0% | goodput_mbps | 10 | 8 | 12 | 4 |"])

    def test_is_written_between_the_marks_again_and_again(self):
        text = f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n"
        once = written(text, self.RESULT, 5)
        self.assertTrue(once.startswith("before\n\n" + BEGIN) and once.endswith(END + "\n\nafter\n"))
        self.assertIn("5 seeds; worst of what nothing explains: 10.0%", once)
        self.assertNotIn("old", once)
        self.assertEqual(written(once, self.RESULT, 5), once)

    def test_a_document_without_marks_is_left_alone(self):
        for text in ("nothing", BEGIN, END + BEGIN):
            with self.subTest(text), self.assertRaises(ValueError):
                written(text, self.RESULT, 5)


if __name__ == "__main__":
    unittest.main()
