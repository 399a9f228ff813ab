"""The runs of an experiment."""

import dataclasses
import itertools

from .spec import Cell


def grid_of(experiment, quick=False, seeds=None):
    """The grid that is wanted; `seeds` instead of its own number."""
    grid = experiment.quick if quick else experiment.full
    return dataclasses.replace(grid, seeds=seeds) if seeds else grid


def cells_of(experiment, grid):
    """All runs, seed by seed, so that an interrupted series has results for each point."""
    for seed in range(1, grid.seeds + 1):
        for point in itertools.product(*grid.axes.values()):
            labels = dict(zip(grid.axes, point))
            for variant in experiment.variants:
                yield Cell(variant, point, seed, experiment.words(grid, variant, labels, seed))


def series_cell(experiment):
    """The run of which a plot over time is drawn."""
    plot = experiment.series
    grid = dataclasses.replace(experiment.full, settings={**experiment.full.settings, **plot.settings})
    words = experiment.words(grid, plot.variant, dict(zip(grid.axes, plot.point)), 1)
    return Cell(plot.variant, plot.point, 1, (*words, "--interval", f"{plot.interval:g}"), series=True)
