"""The comparison of a variant with the best of the others."""

import unittest
from types import SimpleNamespace

from runner.rivals import rivals
from runner.samples import Sample, Series


class _Outcome:
    def __init__(self, values):
        variants = {variant: variant for variant in values}
        self.experiment = SimpleNamespace(name="one", variants=variants, reports={"p99": None})
        self.grid = SimpleNamespace(seeds=2)
        self._values = values

    def report(self, _, variant):
        return Series(["loss"], {(label,): Sample(values) for label, values in self._values[variant].items()})


def _known():
    return {"one": _Outcome({"ours": {"0": [2, 4], "1": [3, 3]}, "good": {"0": [1, 4], "1": [6, 6]},
                             "bad": {"0": [9, 9], "1": [4, 6]}, "none": {"0": [1, 1], "1": [1, 1]}})}


class Rivals(unittest.TestCase):
    def test_the_best_is_who_is_furthest_in_front_and_the_ratio_is_of_pairs(self):
        first, second = rivals(_known(), "ours", leaving=["none"])
        self.assertEqual((first["point"], first["best"], first["ratio"]), ({"loss": "0"}, "good", 1.5))
        self.assertEqual((first["value"], first["of_the_best"]), (3, 2.5))
        self.assertEqual((second["best"], second["ratio"]), ("bad", (3 / 4 + 3 / 6) / 2))
        self.assertGreater(first["interval"], 0)
        self.assertEqual(first["seeds"], 2)

    def test_one_bad_seed_hides_no_rival(self):
        known = {"one": _Outcome({"ours": {"0": [2, 2, 2]}, "odd": {"0": [1, 1, 9]}, "even": {"0": [2, 2, 2]}})}
        first = rivals(known, "ours")[0]
        self.assertEqual(first["best"], "odd", "its mean of 3.7 is the largest")
        self.assertAlmostEqual(first["ratio"], (2 + 2 + 2 / 9) / 3)

    def test_all_others_are_rivals_unless_left_out(self):
        self.assertEqual({entry["best"] for entry in rivals(_known(), "ours")}, {"none"})

    def test_an_experiment_without_the_variant_or_the_report_says_nothing(self):
        self.assertEqual(rivals(_known(), "theirs"), [])
        self.assertEqual(rivals(_known(), "ours", report="p50"), [])


if __name__ == "__main__":
    unittest.main()
