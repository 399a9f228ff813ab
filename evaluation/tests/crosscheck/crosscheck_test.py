"""The computation of differences from the results of two programs, and their table."""

import json
import math
import tempfile
import unittest
from unittest import mock

from crosscheck.cases import CASES, EXPLAINED, RULES, Case, is_settled
from crosscheck.compare import compare, difference, flow_by_flow, reason_for
from crosscheck import linux, linux_cases, run
from crosscheck.run import run_both, write_routes
from crosscheck.table import BEGIN, END, lines, written

LOSSY = Case("lossy path, newreno, 1.0% lost", "lossy-path", ("--loss", 0.01), ("goodput_mbps",))
CUBIC = Case("lossy path, cubic, 1.0% lost", "lossy-path", ("--control", "cubic"), ("goodput_mbps",))
TREE = Case("permutation, dctcp", "permutation", ("--control", "dctcp"), ("goodput_mean_mbps", "jain"))
WHY = {("lossy path, cubic", "goodput_mbps"): "another CUBIC"}


def lossy(*goodputs, timeouts=0):
    return [{"experiment": "lossy-path", "seed": seed, "control": "newreno", "goodput_mbps": goodput,
             "timeouts": timeouts} for seed, goodput in enumerate(goodputs, 1)]


def tree(*goodputs):
    mean = sum(goodputs) / len(goodputs)
    return {"experiment": "permutation", "goodput_mbps": list(goodputs), "goodput_mean_mbps": mean, "jain": 1.0,
            "timeouts": 1}


class Cases(unittest.TestCase):
    def test_names_are_different(self):
        self.assertEqual(len({case.name for case in CASES}), len(CASES))

    def test_every_experiment_is_there_with_several_seeds(self):
        self.assertEqual({case.experiment for case in CASES}, {"lossy-path", "dctcp-queue", "incast", "permutation"})
        for case in CASES:
            with self.subTest(case.name):
                self.assertGreaterEqual(case.seeds, 5)

    def test_a_run_has_its_seed_and_what_only_one_program_knows(self):
        self.assertEqual(LOSSY.command(3), ["lossy-path", "--loss", "0.01", "--seed", "3"])
        self.assertEqual(LOSSY.command(1, LOSSY.ours)[-4:], [str(word) for word in RULES])
        self.assertTrue(TREE.has_routes)
        self.assertFalse(LOSSY.has_routes)

    def test_what_is_explained_is_compared(self):
        for beginning, figure in EXPLAINED:
            with self.subTest(beginning):
                self.assertTrue(any(case.name.startswith(beginning) for case in CASES if figure in case.figures))

    def test_incasts_of_dctcp_have_cases_without_what_explains_the_others(self):
        counted = [case.name for case in CASES if not any(reason_for(case, figure) for figure in case.figures)]
        for senders in (10, 20, 30, 40):
            self.assertIn(f"incast, dctcp with two segments, {senders} senders", counted)

    def test_each_program_gets_what_is_for_it_alone(self):
        case = Case("a", "incast", ("--senders", 3), ("completion_ms",), 1, ours=("--ours",), theirs=("--theirs",))
        asked = {}

        def simulate(program, runs):
            asked[program] = runs
            return {key: {} for key in runs}
        with mock.patch.object(run, "simulate", simulate):
            run_both("braid-sim tcp", "ns3_check", [case])
        self.assertEqual(list(asked["braid-sim tcp"].values()), [["incast", "--senders", "3", "--seed", "1", "--ours"]])
        self.assertEqual(list(asked["ns3_check"].values()), [["incast", "--senders", "3", "--seed", "1", "--theirs"]])

    def test_only_the_cases_that_say_so_change_ns3(self):
        self.assertEqual([case.name for case in CASES if case.theirs],
                         [f"incast, dctcp with two segments, {senders} senders" for senders in (10, 20, 30, 40)])

    def test_settled_is_what_has_no_longer_twin(self):
        names = [case.name for case in CASES]
        short = [name for name in names if not is_settled(name)]
        self.assertEqual(len(short), 8)
        self.assertTrue(all(f"{name}, 0.4 s" in names for name in short))

    def test_those_for_the_kernel_have_what_its_lab_needs(self):
        cases = linux_cases.CASES
        self.assertEqual(len({case.name for case in cases}), len(cases))
        for case in cases:
            with self.subTest(case.name):
                options = linux.options_of(case)
                self.assertGreaterEqual(options.keys(), {"rate", "rtt", "queue", "recovery"})
                self.assertIn(case.experiment, ("lossy-path", "timeouts", "incast"))
                if case.experiment == "timeouts":
                    self.assertEqual(options["flows"] * case.seeds % linux.PATHS, 0)
        for beginning, figure in linux_cases.EXPLAINED:
            self.assertTrue(any(case.name.startswith(beginning) and figure in case.figures for case in cases))

    def test_the_routes_of_one_run_are_those_of_the_other(self):
        routes = [{"from": 0, "to": 1}, {"from": 1, "to": 0}]
        with tempfile.TemporaryDirectory() as folder:
            arguments = write_routes({"with": {"routes": routes}, "without": {}}, folder)
            self.assertEqual(list(arguments), ["with"])
            flag, file = arguments["with"]
            self.assertEqual((flag, json.loads(file.read_text(encoding="ascii"))), ("--routes", routes))


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
        self.assertEqual((pair["ours"], pair["theirs"], pair["figure"], pair["seeds"]), (9, 10, "goodput_mbps", 2))
        # Student's t for two values is 12.706, their standard error 1 and 2.
        self.assertAlmostEqual(pair["ours_interval"], 12.706, places=3)
        self.assertAlmostEqual(pair["theirs_interval"], 25.412, places=3)
        self.assertAlmostEqual(result["worst"], 0.1)
        self.assertEqual([each["figure"] for each in result["pairs"]], ["goodput_mbps", "goodput_mean_mbps", "jain"])

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
    RESULT = compare([LOSSY, CUBIC, TREE],
                     {LOSSY.name: lossy(9), CUBIC.name: lossy(1999, 2001), TREE.name: [tree(10, 10)]},
                     {LOSSY.name: lossy(10), CUBIC.name: lossy(1000, 1000), TREE.name: [tree(8, 12)]}, WHY)

    def test_has_a_line_for_each_pair(self):
        self.assertEqual(list(lines(self.RESULT, "ns-3"))[2:4], [
            "| lossy path, newreno, 1.0% lost | goodput_mbps | 1 | 9 | 10 | -10.0% |",
            "| lossy path, cubic, 1.0% lost | goodput_mbps | 2 | 2,000 ± 12.7 | 1,000 ± 0 | +100.0%, "
            "explained: another CUBIC |"])
        self.assertEqual(len(list(lines(self.RESULT, "ns-3"))), 2 + 4)

    def test_is_written_between_the_marks_again_and_again(self):
        text = f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n"
        once = written(text, self.RESULT, "ns-3")
        self.assertTrue(once.startswith("before\n\n" + BEGIN) and once.endswith(END + "\n\nafter\n"))
        self.assertIn("worst of what nothing explains: 10.0%", once)
        self.assertIn("permutation, dctcp differs by 20.0% of the mean", once)
        self.assertNotIn("old", once)
        self.assertEqual(written(once, self.RESULT, "ns-3"), once)

    def test_a_document_without_marks_is_left_alone(self):
        for text in ("nothing", BEGIN, END + BEGIN):
            with self.subTest(text), self.assertRaises(ValueError):
                written(text, self.RESULT, "ns-3")


if __name__ == "__main__":
    unittest.main()
