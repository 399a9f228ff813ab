"""The tables of an experiment."""

import math


def shown(value):
    """A number with three significant digits."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0 or abs(value) >= 999.5:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _half(sample):
    """An interval with two significant digits, but no more decimals than the mean has."""
    return "0" if sample.half < abs(sample.mean) * 5e-4 else f"{float(f'{sample.half:.2g}'):g}"


def _measured(sample):
    """Mean and interval."""
    if sample is None or not sample.defined:
        return "–"
    return shown(sample.mean) if math.isnan(sample.half) else f"{shown(sample.mean)} ± {_half(sample)}"


def _row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def table(head, rows):
    return "\n".join([_row(*head), _row(*["---"] * len(head)), *[_row(*row) for row in rows]]) + "\n"


def with_unit(text, unit):
    return f"{text}, {unit}" if unit else text


def wanted(claim):
    """The paper's claim, and what is judged where that differs."""
    bound = shown(claim.limit)
    if claim.within:
        sign = {"about": "±", "at most": "+", "at least": "-"}[claim.relation]
        bound += f" ({sign} {claim.within:.0%})"
    if claim.paper in (shown(claim.limit), f"{claim.limit:g}"):
        return f"{claim.relation} {bound}"
    return f"{claim.paper}; judged: {claim.relation} {bound}"


def judged(verdict):
    if verdict.sample is None:
        return "not in this grid"
    if verdict.claim.input:
        return "an input" if verdict.met else "an input, **differs**"
    return "met" if verdict.met else "**missed**"


def interval(sample):
    """The ends of the 95 % interval."""
    ends = [shown(sample.mean + side * sample.half) for side in (-1, 1)] if sample else ["–"] * 2
    return " to ".join(ends) if "–" not in ends else "–"


def _claims(outcome):
    rows = []
    for claim in outcome.experiment.claims:
        verdict = outcome.verdict(claim)
        sample = verdict.sample
        rows.append((", ".join(claim.figures), with_unit(claim.what, claim.unit), wanted(claim),
                     shown(sample.mean) if sample else "–", interval(sample), shown(verdict.ratio), judged(verdict),
                     claim.why))
    text = table(("figure", "claim", "paper", "ours", "95 % interval", "ours / paper", "", "why"), rows)
    return text + (f"\nWhy ours differ: {outcome.experiment.why}.\n" if outcome.experiment.why else "")


def _report(outcome, report):
    """Rows are points of the axes, columns are variants. In brackets: the paired ratio to the reference variant."""
    experiment, axes, rows = outcome.experiment, list(outcome.grid.axes), []
    series = {variant: outcome.report(report.name, variant) for variant in experiment.variants}
    for point in next(iter(series.values())).points:
        cells = []
        for variant, each in series.items():
            text = _measured(each.points[point])
            if report.against and variant != report.against:
                text += f" ({_measured(each.points[point] / series[report.against].points[point])})"
            cells.append(text)
        rows.append((*point, *cells))
    title = with_unit(report.what, report.unit)
    if report.figures:
        title = f"{'Fig.' if len(report.figures) == 1 else 'Figs.'} {', '.join(report.figures)}: {title}"
    if report.against:
        title += f" (in brackets / {report.against})"
    return f"{title}\n\n" + table((*axes, *experiment.variants), rows)


def block(outcome, quick=False):
    """All tables of an experiment."""
    experiment = outcome.experiment
    grid = "The reduced grid, not the paper's scale: " if quick else ""
    settings = "".join(f", {name} {text}" for name, text in outcome.grid.settings.items())
    parts = [f"{grid}{outcome.grid.seeds} seeds{settings}; mean ± 95 % interval. `evaluation/run {experiment.name}"
             f"{' --quick' if quick else ''}`\n"]
    if experiment.claims:
        parts.append(_claims(outcome))
    parts += [_report(outcome, report) for report in experiment.reports.values()]
    if unfinished := +outcome.unfinished:
        each = ", ".join(f"{variant} {count}" for variant, count in unfinished.items())
        parts.append(f"Flows that had not ended when their run did, and count with the time that they had: {each}.\n")
    return "\n".join(parts)
