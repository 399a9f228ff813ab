"""Plots: an experiment's reports with error bars, and subflows over time. The same data gives the same bytes."""

import itertools
import json
import textwrap

import matplotlib

from .document import Mistake

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

pyplot.rcParams.update({"svg.hashsalt": "braid", "svg.fonttype": "none", "font.size": 9, "axes.grid": True,
                        "grid.linewidth": 0.3, "axes.spines.top": False, "axes.spines.right": False,
                        "lines.linewidth": 1})
NO_DATE = {"Date": None, "Creator": None}
LARGEST = 200_000  # bytes of a file
MOST_PANELS = 16  # most reports of a plot, since more would be unreadable; the tables have all


def _save(figure, path):
    figure.savefig(path, format="svg", metadata=NO_DATE)
    pyplot.close(figure)
    if path.stat().st_size > LARGEST:
        raise Mistake(f"{path} has {path.stat().st_size} bytes; draw fewer points")


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines(axes, outcome, report, rest):
    """Draws the variants over the first axis, with the other axes at `rest`: lines when its values are numbers, else
    points. Without an axis the variants are drawn side by side."""
    variants = outcome.experiment.variants
    labels = list(next(iter(outcome.grid.axes.values()), [None]))
    ordered = all(label is not None and _is_number(label) for label in labels)
    for number, variant in enumerate(variants):
        points = outcome.report(report.name, variant).points
        samples = [points[() if label is None else (label, *rest)] for label in labels]
        aside = number if labels == [None] else (number - (len(variants) - 1) / 2) * 0.06
        axes.errorbar([place + aside for place in range(len(labels))], [sample.mean for sample in samples],
                      yerr=[sample.half for sample in samples], marker="." if ordered else "o", markersize=4,
                      linestyle="-" if ordered else "none", capsize=2, label=variant)
    if labels == [None]:
        axes.set_xticks(range(len(variants)), variants)
        axes.margins(x=0.2)
    else:
        axes.set_xticks(range(len(labels)), labels)


def drawn(experiment, columns):
    """The reports for which a plot with `columns` columns has room; those of the papers' figures first."""
    by_weight = sorted(experiment.reports.values(), key=lambda report: not report.figures)
    kept = by_weight[:max(1, MOST_PANELS // columns)]
    return [report for report in experiment.reports.values() if report in kept]


def reports(outcome, path):
    """Writes an SVG: a row for each of the drawn() reports, a column for each point of the axes after the first."""
    experiment, axes = outcome.experiment, list(outcome.grid.axes)
    columns = list(itertools.product(*list(outcome.grid.axes.values())[1:]))
    shown = drawn(experiment, len(columns))
    rows = len(shown)
    figure, panels = pyplot.subplots(rows, len(columns), squeeze=False, layout="constrained", sharex="col",
                                     sharey="row", figsize=(max(6, 3 * len(columns)), 2.6 * rows + 0.5))
    for row, report in zip(panels, shown):
        for panel, rest in zip(row, columns):
            _lines(panel, outcome, report, rest)
        if report.log:
            row[0].set_yscale("log")
            row[0].minorticks_off()
        else:
            row[0].set_ylim(bottom=min(0, row[0].get_ylim()[0]))
        label = f"{report.what}, {report.unit}" if report.unit else report.what
        row[0].set_ylabel("\n".join(textwrap.wrap(label, 34)))
    for panel, rest in zip(panels[0], columns):
        panel.set_title(", ".join(f"{axis} {label}" for axis, label in zip(axes[1:], rest)), fontsize=9)
    for panel in panels[-1]:
        panel.set_xlabel(axes[0] if axes else "")
    if axes:
        panels[0][0].legend(fontsize=8)
    figure.suptitle(experiment.title, fontsize=10)
    _save(figure, path)


def read_series(path, subflows):
    """{subflow: its samples in order} of what a program wrote by --series."""
    series = {subflow: [] for subflow in subflows}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            sample = json.loads(line)
            if sample["subflow"] in series:
                series[sample["subflow"]].append(sample)
    missing = [subflow for subflow, samples in series.items() if not samples]
    if missing:
        raise Mistake(f"{path}: nothing of {', '.join(missing)}; name subflows that the program writes")
    return series


def _panel(axes, label):
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)


def over_time(plot, series, capacity, path):
    """Writes an SVG of windows, rates, round trips and queues. `series`: of read_series(); `capacity`: Mbit/s of the
    path, second by second, or None."""
    scale = 1000 if plot.milliseconds else 1
    figure, (windows, rates, rtts, queues) = pyplot.subplots(4, 1, sharex=True, figsize=(8, 8.5), layout="constrained")

    def column(subflow, field, factor):
        return [None if sample[field] is None else sample[field] * factor for sample in series[subflow]]

    for number, (subflow, name) in enumerate(plot.subflows.items()):
        t, color = [sample["t"] * scale for sample in series[subflow]], f"C{number}"
        windows.plot(t, column(subflow, "window", 1e-3), color=color, label=name)
        rates.plot(t, column(subflow, "rate", 8e-6), color=color)
        rates.plot(t, column(subflow, "delivery", 8e-6), color=color, alpha=0.4, linewidth=0.7)
        rtts.plot(t, column(subflow, "rtt", 1e3), color=color)
        if subflow in plot.queues:
            queues.plot(t, column(subflow, "queue", 1e-3), color=color, label=plot.queues[subflow])
    if capacity:
        rates.step(range(len(capacity)), capacity, where="post", color="black", linewidth=0.8, linestyle=":",
                   label="capacity")
        rates.legend(loc="upper right", fontsize=8)
    _panel(windows, "window, KB")
    _panel(rates, "pacing rate\n(pale: delivery rate), Mbit/s")
    _panel(rtts, "smoothed RTT, ms")
    _panel(queues, "queue, KB")
    queues.set_ylim(top=max(1, queues.get_ylim()[1]))  # a policer has none
    queues.set_xlabel("ms" if plot.milliseconds else "s")
    windows.legend(loc="upper right", fontsize=8)
    if len(plot.queues) > 1:
        queues.legend(loc="upper right", fontsize=8)
    figure.suptitle(f"{plot.variant}: {plot.title}", fontsize=10)
    _save(figure, path)
