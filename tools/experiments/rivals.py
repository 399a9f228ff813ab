"""How one variant stands against the best of the others, over all experiments that have it."""

from .samples import smallest


def rivals(known, variant, report="p99", leaving=()):
    """[{"experiment", "point", "best", "value", "of_the_best", "ratio", "interval", "seeds"}], the worst ratio first,
    of each point of each experiment that has this variant and this report. `known`: {name: outcome}; `leaving`:
    variants that are no rivals. "best" has the least mean there; the ratio is the mean of the seeds' own, its interval
    of 95 %."""
    found = []
    for outcome in known.values():
        experiment = outcome.experiment
        others = [each for each in experiment.variants if each != variant and each not in leaving]
        if variant not in experiment.variants or report not in experiment.reports or not others:
            continue
        ours = outcome.report(report, variant)
        for point, sample in ours.points.items():
            theirs = {each: outcome.report(report, each).points[point] for each in others}
            best = smallest(*theirs.values())
            ratio = sample / best
            found.append({"experiment": experiment.name, "point": dict(zip(ours.axes, point)),
                          "best": next(each for each, of in theirs.items() if of is best),
                          "value": sample.mean, "of_the_best": best.mean, "ratio": ratio.mean,
                          "interval": ratio.half, "seeds": outcome.grid.seeds})
    return sorted(found, key=lambda entry: entry["ratio"], reverse=True)
