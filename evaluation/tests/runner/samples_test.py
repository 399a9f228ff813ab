"""Means, intervals, and ratios of pairs."""

import math
import unittest

from runner.samples import Sample, Series, average, interval, largest, narrow, pick, smallest


class Intervals(unittest.TestCase):
    def test_known_values(self):
        # t(0.975) of 4 degrees of freedom is 2.776445, of 1 12.706205, of 9 2.262157.
        self.assertAlmostEqual(interval([1, 2, 3, 4, 5]), 2.776445 * math.sqrt(2.5) / math.sqrt(5), places=5)
        self.assertAlmostEqual(interval([0, 1]), 12.706205 * math.sqrt(0.5) / math.sqrt(2), places=5)
        self.assertAlmostEqual(interval(range(10)), 2.262157 * math.sqrt(55 / 6) / math.sqrt(10), places=5)
        self.assertEqual(interval([3, 3, 3]), 0)

    def test_one_value_has_none(self):
        self.assertTrue(math.isnan(interval([7])))

    def test_values_of_which_one_is_no_number_have_none(self):
        for odd in (math.nan, math.inf):
            self.assertTrue(math.isnan(interval([1, odd, 3])))
            self.assertFalse(Sample([1, odd - odd, 3]).defined)


class Pairs(unittest.TestCase):
    def test_a_ratio_is_one_of_pairs(self):
        variant, baseline = Sample([1, 10, 100]), Sample([2, 20, 200])
        ratio = variant / baseline
        self.assertEqual(ratio.values, (0.5, 0.5, 0.5))
        self.assertEqual(ratio.half, 0)  # though either differs much from seed to seed
        self.assertGreater(variant.half, 100)

    def test_numbers_on_either_side(self):
        sample = Sample([1, 2])
        self.assertEqual((1 - sample / 2).values, (0.5, 0))
        self.assertEqual((4 / sample).values, (4, 2))
        self.assertEqual((-sample * 2).values, (-2, -4))

    def test_a_ratio_to_nothing_is_not_defined(self):
        self.assertFalse((Sample([1, 1]) / Sample([1, 0])).defined)
        self.assertFalse((1 / Sample([0, 1])).defined)

    def test_other_numbers_of_seeds(self):
        with self.assertRaises(ValueError):
            Sample([1, 2]) + Sample([1, 2, 3])


class Choices(unittest.TestCase):
    def setUp(self):
        self.series = Series(("loss", "where"), {("0.01", "inside"): Sample([1, 3]), ("0.01", "edge"): Sample([5, 5]),
                                                 ("0.10", "inside"): Sample([9, 0]), ("0.10", "edge"): Sample([4, 4])})

    def test_by_the_mean(self):
        self.assertEqual(largest(self.series).values, (5, 5))
        self.assertEqual(smallest(self.series).values, (1, 3))
        self.assertEqual(largest(Sample([1, 2]), 3), 3)

    def test_of_several_series_it_is_point_by_point(self):
        others = Series(self.series.axes, {point: Sample([4, 4.5]) for point in self.series.points})
        best = smallest(self.series, others)
        self.assertEqual({point: sample.values for point, sample in best.points.items()},
                         {("0.01", "inside"): (1, 3), ("0.01", "edge"): (4, 4.5),
                          ("0.10", "inside"): (4, 4.5), ("0.10", "edge"): (4, 4)})
        self.assertEqual(largest(self.series / best).values, (5 / 4, 5 / 4.5), "not of the least of all points")
        self.assertEqual(largest(self.series, Sample([4, 4.5]), 4.75).points["0.01", "inside"], 4.75)
        with self.assertRaisesRegex(ValueError, "other axes or points"):
            smallest(self.series, pick(self.series, loss="0.01"))
        with self.assertRaises(ValueError):
            smallest(self.series, others, over="loss")

    def test_what_is_not_defined_makes_no_choice(self):
        """Left out, a point with timeouts in one seed with the shim, and none without, would count for nothing."""
        for choose in (largest, smallest):
            self.assertFalse(choose(Sample([math.nan, 9]), Sample([1, 1])).defined)
            self.assertFalse(choose(Sample([1, 1]), Sample([math.nan, 9]), 3).defined)
            self.assertFalse(choose(Series(("a",), {("1",): Sample([3, 0]) / Sample([0, 2]),
                                                    ("2",): Sample([1, 1]) / Sample([4, 4])})).defined)

    def test_along_an_axis(self):
        self.assertEqual({point: sample.values for point, sample in largest(self.series, over="where").points.items()},
                         {("0.01",): (5, 5), ("0.10",): (9, 0)})
        self.assertEqual(average(self.series, over="loss").points["inside",].values, (5, 1.5))

    def test_average(self):
        self.assertEqual(average(self.series).values, (19 / 4, 3))

    def test_picking(self):
        self.assertEqual(pick(self.series, loss=0.1, where="edge").values, (4, 4))
        self.assertEqual(set(pick(self.series, loss=0.01).points), {("inside",), ("edge",)})
        with self.assertRaises(KeyError):
            pick(self.series, loss=0.02)
        with self.assertRaisesRegex(ValueError, "no axis size here, but: loss, where"):
            pick(self.series, size=1)

    def test_narrowing(self):
        self.assertEqual(narrow(self.series, {"loss": ["0.10"], "where": ["edge"]}).values, (4, 4))
        self.assertEqual(set(narrow(self.series, {"loss": ["0.10", "0.5"]}).points),
                         {("0.10", "inside"), ("0.10", "edge")})
        with self.assertRaisesRegex(KeyError, "the grid has no loss of 0.5"):
            narrow(self.series, {"loss": ["0.5"]})

    def test_series_with_other_points(self):
        with self.assertRaisesRegex(ValueError, "other axes or points"):
            self.series / pick(self.series, loss=0.01)


if __name__ == "__main__":
    unittest.main()
