"""The results of an experiment's runs."""

import collections
import dataclasses

from .formula import of_a_run
from .grid import cells_of
from .runs import Failure
from .samples import Sample, Series, narrow, pick
from .spec import OF_ALL_RUNS


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result of a claim. `sample` is None where the grid lacks its points."""

    claim: object
    sample: Sample | None

    @property
    def met(self):
        return self.sample is not None and self.sample.defined and self.claim.holds(self.sample.mean)

    @property
    def ratio(self):
        """Our number divided by the paper's; None where there is none."""
        try:
            paper = float(self.claim.paper)
        except ValueError:
            return None
        return self.sample.mean / paper if self.sample is not None and self.sample.defined and paper else None


class Outcome:
    """The outcome of one experiment. `results`: {(experiment name, cell): figures or Failure}. A run that is missing or
    has failed makes the experiment fail. `unfinished`: {variant: flows of all its runs that had not ended with their
    run}; the programs count such a flow with the time that it had."""

    def __init__(self, experiment, grid, results):
        self.experiment, self.grid = experiment, grid
        self.failures, self.unfinished = [], collections.Counter()
        self._reports = {name: {} for name in experiment.reports}
        by_point = {}
        for cell in cells_of(experiment, grid):
            result = results.get((experiment.name, cell), Failure("was not run"))
            if isinstance(result, Failure):
                self.failures.append((cell, str(result)))
            else:
                by_point.setdefault((cell.variant, cell.point), []).append((cell, result))
                for part in (result, result.get("short", {})):
                    self.unfinished[cell.variant] += part.get("incomplete", 0)
        for name, report in experiment.reports.items():
            for place, runs in by_point.items():
                self._reports[name][place] = self._sample(report, runs)

    def _sample(self, report, runs):
        values = []
        for cell, result in runs:
            try:
                values.append(of_a_run(report.value, result))
            except (ValueError, KeyError, TypeError, ArithmeticError) as error:
                self.failures.append((cell, f"{report.name}: {error}"))
        return Sample(values) if values else None

    def report(self, name, variant):
        """The series of a report for one variant, over all axes."""
        points = {point: sample for (each, point), sample in self._reports[name].items() if each == variant}
        return Series(self.grid.axes, points)

    def verdict(self, claim):
        """Judges it. Nothing of an experiment that failed may be judged."""
        if self.failures:
            raise ValueError(f"{self.experiment.name} failed")
        names = {**OF_ALL_RUNS, **{axis: axis for axis in self.grid.axes},
                 **{variant: variant for variant in self.experiment.variants}}
        for report in self._reports:
            names[report] = (lambda variant, report=report, **where:
                             pick(narrow(self.report(report, variant), claim.at), **where))
        try:
            value = claim.value(names)
        except KeyError:
            return Verdict(claim, None)
        if not isinstance(value, Sample):
            raise ValueError(f"{claim.name}: the value is not one of a report; choose by max, min, mean or AXIS=VALUE")
        return Verdict(claim, value)
