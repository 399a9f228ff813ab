"""Results by seed, and statistics of their mean."""

import math
import operator
from statistics import fmean, stdev

from scipy.special import stdtrit


def interval(values):
    """Half the width of the 95 % confidence interval of the mean by Student's t. NaN for fewer than two values, or when
    one is NaN (a ratio to 0)."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.nan
    return float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))


def _divide(a, b):
    return a / b if b else math.nan


def _arithmetic(cls):
    """Gives the class +, -, * and / with itself and with numbers, by its _with()."""
    for name, function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul),
                           ("truediv", _divide), ("pow", operator.pow)):
        setattr(cls, f"__{name}__", lambda self, other, f=function: self._with(other, f))
        setattr(cls, f"__r{name}__", lambda self, other, f=function: self._with(other, lambda a, b: f(b, a)))
    cls.__neg__ = lambda self: self * -1
    return cls


@_arithmetic
class Sample:
    """A result by seed. Operations on two samples are done seed by seed, so a ratio is a paired ratio."""

    def __init__(self, values):
        self.values = tuple(map(float, values))

    @property
    def mean(self):
        return fmean(self.values)

    @property
    def half(self):
        return interval(self.values)

    @property
    def defined(self):
        return not math.isnan(self.mean)

    def _with(self, other, function):
        if isinstance(other, Series):
            return NotImplemented
        values = other.values if isinstance(other, Sample) else [other] * len(self.values)
        return Sample(function(a, b) for a, b in zip(self.values, values, strict=True))

    def __repr__(self):
        return f"Sample{self.values}"


@_arithmetic
class Series:
    """A sample at each point of some axes."""

    def __init__(self, axes, points):
        self.axes, self.points = tuple(axes), dict(points)

    def _with(self, other, function):
        if not isinstance(other, Series):
            return Series(self.axes, {point: sample._with(other, function)
                                      for point, sample in self.points.items()})
        self.match(other)
        return Series(self.axes, {point: sample._with(other.points[point], function)
                                  for point, sample in self.points.items()})

    def match(self, other):
        """ValueError unless both have the same axes and points."""
        if self.axes != other.axes or self.points.keys() != other.points.keys():
            raise ValueError("these two have other axes or points; say where (AXIS=VALUE)")

    def reduce(self, choose, over):
        """Applies `choose` to the samples of each row along the axis `over`."""
        place, rows = self.axes.index(over), {}
        for point, sample in self.points.items():
            rows.setdefault(point[:place] + point[place + 1:], []).append(sample)
        return at(Series(self.axes[:place] + self.axes[place + 1:],
                         {point: choose(*samples) for point, samples in rows.items()}))


def at(series):
    """The one sample of a series without axes; others as they are."""
    return series.points[()] if isinstance(series, Series) and not series.axes else series


def _same(label, value):
    try:
        return float(label) == float(value)
    except ValueError:
        return label == str(value)


def pick(series, **where):
    """The part of a series at these axis values; a sample when no axis is left."""
    for axis, value in where.items():
        axes = () if isinstance(series, Sample) else series.axes
        if axis not in axes:
            raise ValueError(f"there is no axis {axis} here, but: {', '.join(axes) or 'none'}")
        place = series.axes.index(axis)
        points = {point[:place] + point[place + 1:]: sample for point, sample in series.points.items()
                  if _same(point[place], value)}
        if not points:
            raise KeyError(f"the grid has no {axis} of {value}")
        series = at(Series(series.axes[:place] + series.axes[place + 1:], points))
    return series


def narrow(series, places):
    """The points at these labels, {axis: [label]}; an axis of one label goes."""
    for axis, labels in places.items():
        place = series.axes.index(axis)
        points = {point: sample for point, sample in series.points.items() if point[place] in labels}
        if not points:
            raise KeyError(f"the grid has no {axis} of {', '.join(labels)}")
        series = Series(series.axes, points)
        if len(labels) == 1:
            series = pick(series, **{axis: labels[0]})
    return at(series)


def _flat(values):
    """The samples and numbers of all these; a series is all of its samples."""
    return [each for value in values for each in (value.points.values() if isinstance(value, Series) else [value])]


def _rows(values):
    """Series that have the same axes and points, and what holds at every point, as a series of lists."""
    first = next(value for value in values if isinstance(value, Series))
    for other in (value for value in values if isinstance(value, Series)):
        first.match(other)
    return Series(first.axes, {point: [value.points[point] if isinstance(value, Series) else value for value in values]
                               for point in first.points})


def _chooser(choose):
    """A function that chooses one of several samples and numbers by their means; of one series, one of its samples; of
    several series, a series, point by point. If one is undefined, it is chosen, because it might be the largest; a
    claim about it is then not met."""
    def function(*values, over=None):
        if over is not None:
            (series,) = values
            return series.reduce(function, over)
        if len(values) > 1 and any(isinstance(value, Series) for value in values):
            rows = _rows(values)
            return Series(rows.axes, {point: function(*row) for point, row in rows.points.items()})
        samples = _flat(values)
        lacking = next((sample for sample in samples if isinstance(sample, Sample) and not sample.defined), None)
        return lacking or choose(samples, key=lambda each: each.mean if isinstance(each, Sample) else each)
    return function


largest, smallest = _chooser(max), _chooser(min)


def average(*values, over=None):
    """The mean of samples and of all points of series, seed by seed."""
    if over is not None:
        return values[0].reduce(average, over)
    samples = _flat(values)
    return sum(samples[1:], samples[0]) / len(samples)
