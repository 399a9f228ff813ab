"""Compares one variant with the best of the others, over all experiments that have it."""


def rivals(known, variant, report="p99", leaving=()):
    """[{"experiment", "point", "best", "value", "of_the_best", "ratio", "interval", "seeds"}], the worst ratio first,
    of each point of each experiment that has this variant and this report. `known`: {name: outcome}; `leaving`:
    variants that are no rivals. The ratio is the mean of the seeds' own, its interval of 95 %; "best" is the rival to
    which it is the largest: the least mean may be another's, who has one bad seed."""
    found = []
    for outcome in known.values():
        experiment = outcome.experiment
        others = [each for each in experiment.variants if each != variant and each not in leaving]
        if variant not in experiment.variants or report not in experiment.reports or not others:
            continue
        ours = outcome.report(report, variant)
        for point, sample in ours.points.items():
            theirs = {each: outcome.report(report, each).points[point] for each in others}
            ratios = {each: sample / of for each, of in theirs.items()}
            best, ratio = max(ratios.items(), key=lambda item: item[1].mean)
            found.append({"experiment": experiment.name, "point": dict(zip(ours.axes, point)), "best": best,
                          "value": sample.mean, "of_the_best": theirs[best].mean, "ratio": ratio.mean,
                          "interval": ratio.half, "seeds": outcome.grid.seeds})
    return sorted(found, key=lambda entry: entry["ratio"], reverse=True)
