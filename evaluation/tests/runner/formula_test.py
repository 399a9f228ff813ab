"""The values of formulas for one run's figures."""

import unittest

from runner.formula import Formula, of_a_run

RUN = {"mean": 0.5, "max": 2, "times": [4, 1, 3, 2], "name": "x",
       "links": {"wifi": {"p95_ms": 7}, "4g": {"p95_ms": 9}}}


def value(text):
    return of_a_run(Formula(text), RUN)


class OfARun(unittest.TestCase):
    def test_arithmetic_of_members(self):
        self.assertEqual(value("mean * 1000 - max / 2"), 499)
        self.assertEqual(value("-(max ** 2)"), -4)

    def test_members_of_members(self):
        self.assertEqual(value("links.wifi.p95_ms"), 7)
        self.assertEqual(value('member("links", "4g", "p95_ms")'), 9)

    def test_functions_of_lists(self):
        self.assertEqual([value(f"{name}(times)") for name in ("sum_of", "mean_of", "max_of", "min_of", "count")],
                         [10, 2.5, 4, 1, 4])
        self.assertEqual([value(f"percentile(times, {share})") for share in (0, 0.25, 0.5, 0.95, 1)], [1, 1, 2, 4, 4])

    def test_what_is_not_there(self):
        with self.assertRaisesRegex(ValueError, "median: no median among mean, max"):
            value("median")
        with self.assertRaisesRegex(ValueError, "no lte among wifi, 4g"):
            value("links.lte.p95_ms")

    def test_what_is_no_number(self):
        for text in ("name", "times", "links.wifi"):
            with self.assertRaisesRegex(ValueError, "is no number"):
                value(text)


if __name__ == "__main__":
    unittest.main()
