"""Judges the claims of all papers, and lists their figures without a number."""

import dataclasses
import math

from .document import Mistake
from .grid import cells_of, grid_of
from .outcome import Outcome
from .runs import kept
from .spec import LEAST_SEEDS

ABSTRACT = "abstract"


class NotKept(Mistake):
    """Raised when there are no results by which an experiment can be judged."""


def outcomes(experiments, store, quick=False):
    """{name: outcome} of the experiments that are judged, by what `store` (a Store or a Record) has of them: their
    first seeds, up to the first that lacks a run, two at least (one, where the grid has one). An experiment of which a
    run has failed is not judged."""
    found = {}
    for experiment in experiments.values():
        try:
            outcome = of_what_is_kept(experiment, store, quick)
        except NotKept:
            continue
        if not outcome.failures:
            found[experiment.name] = outcome
    return found


def of_what_is_kept(experiment, store, quick=False):
    """The outcome of one experiment as outcomes() has it, with the failures of its formulas. NotKept: too little of
    it is there, or a run has failed."""
    grid = grid_of(experiment, quick)
    cells, runs = list(cells_of(experiment, grid)), store.of(experiment)
    results = kept([(experiment, cell) for cell in cells], runs)
    missing = [cell for cell in cells if (experiment.name, cell) not in results]
    seeds = min((cell.seed for cell in missing), default=grid.seeds + 1) - 1
    if any(runs.has_failed(cell) for cell in missing):
        raise NotKept("a run has failed")
    if seeds < min(2, grid.seeds):
        raise NotKept(f"{len(results)} of {len(cells)} runs are there, and of no two seeds all: it has not run, or "
                      "not on this grid")
    return Outcome(experiment, dataclasses.replace(grid, seeds=seeds), results)


def recorded(experiments, record):
    """{name: {"commit", "seeds", "of", "unfinished"}} of each: whose programs have run, how many seeds are judged of
    how many, and {variant: flows} that had not ended with their run."""
    known = outcomes(experiments, record)
    return {name: {"commit": record.commit(name), "seeds": known[name].grid.seeds if name in known else 0,
                   "of": grid_of(experiment).seeds,
                   "unfinished": dict(+known[name].unfinished) if name in known else {}}
            for name, experiment in experiments.items()}


def _number(value):
    return None if value is None or math.isnan(value) else round(value, 6)


def _entry(experiment, claim):
    return {"experiment": experiment.name, "claim": claim.name, "paper": experiment.paper, "figures": claim.figures,
            "what": claim.what, "unit": claim.unit, "says": claim.paper, "relation": claim.relation,
            "limit": claim.limit, "why": claim.why or experiment.why}


def claims(experiments, figures, known):
    """{"met", "all", "share", "claims", "inputs", "without a claim"}. `known`: outcomes(). What was not measured is
    not met, and a figure that no claim is about counts as one that is not met. What is an input of our own models
    counts neither as met nor as one of all."""
    entries, inputs, named = [], [], set()
    for experiment in experiments.values():
        for claim in experiment.claims:
            named |= {(experiment.paper, figure) for figure in claim.figures}
            entry = _entry(experiment, claim)
            outcome = known.get(experiment.name)
            if outcome is None:
                entry |= {"met": False, "missing": "it was not measured"}
            else:
                verdict = outcome.verdict(claim)
                sample = verdict.sample
                entry |= {"met": verdict.met, "value": _number(sample.mean) if sample else None,
                          "interval": _number(sample.half) if sample else None, "ratio": _number(verdict.ratio),
                          "seeds": outcome.grid.seeds}
                if sample is None:
                    entry["missing"] = "this grid has not its points"
            (inputs if claim.input else entries).append(entry)
    without = [f"{paper} {figure}: {headline}" for (paper, figure), headline in figures.items()
               if (paper, figure) not in named]
    met, count = sum(entry["met"] for entry in entries), len(entries) + len(without)
    return {"met": met, "all": count, "share": round(met / count, 6) if count else None, "claims": entries,
            "inputs": inputs, "without a claim": without}


def ratios(experiments, known):
    """The ratio of every variant to its reference variant, in each such report at each point: [{"experiment", "paper",
    "report", "variant", "against", "point": {axis: label}, "ratio", "interval", "seeds"}], seed by seed and then
    averaged. A ratio that is not defined is None. Of experiments that were not measured there is none."""
    found = []
    for outcome in (known[name] for name in experiments if name in known):
        experiment = outcome.experiment
        for report in (each for each in experiment.reports.values() if each.against):
            base = outcome.report(report.name, report.against)
            for variant in (each for each in experiment.variants if each != report.against):
                for point, sample in (outcome.report(report.name, variant) / base).points.items():
                    found.append({"experiment": experiment.name, "paper": experiment.paper, "report": report.name,
                                  "variant": variant, "against": report.against,
                                  "point": dict(zip(outcome.grid.axes, point)), "ratio": _number(sample.mean),
                                  "interval": _number(sample.half), "seeds": outcome.grid.seeds})
    return found


def _has_interval(outcome, figure):
    """True when some result for that figure has a number and an interval from enough seeds."""
    if outcome.grid.seeds < LEAST_SEEDS:
        return False
    experiment = outcome.experiment
    samples = [sample for report in experiment.reports.values() if figure in report.figures
               for variant in experiment.variants for sample in outcome.report(report.name, variant).points.values()]
    samples += [outcome.verdict(claim).sample for claim in experiment.claims if figure in claim.figures]
    return any(sample is not None and sample.defined for sample in samples)


def coverage(experiments, figures, known):
    """[{"figure", "headline", "lacks"}] of the figures without an experiment, a number and an interval."""
    lacking = []
    for (paper, figure), headline in figures.items():
        if figure.startswith(ABSTRACT):
            continue
        about = [each for each in experiments.values() if (paper, figure) in each.figures()]
        measured = [known[each.name] for each in about if each.name in known]
        lacks = ("an experiment" if not about else "a number" if not measured else
                 "an interval" if not any(_has_interval(outcome, figure) for outcome in measured) else None)
        if lacks:
            lacking.append({"figure": f"{paper} {figure}", "headline": headline, "lacks": lacks})
    return lacking
