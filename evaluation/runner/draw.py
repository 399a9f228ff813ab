"""Plots: an experiment's reports with error bars, one of them as a paper's headline, and subflows over time. The same
data gives the same bytes."""

import itertools
import json
import re
import textwrap

import matplotlib

from .document import Mistake

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402  (the backend comes first)

pyplot.rcParams.update({"svg.hashsalt": "braid", "svg.fonttype": "none", "font.size": 9, "axes.grid": True,
                        "grid.linewidth": 0.3, "axes.spines.top": False, "axes.spines.right": False,
                        "lines.linewidth": 1})
NO_DATE = {"Date": None, "Creator": None}
LARGEST_HEADLINE = 40_000  # bytes of a file that is committed
MOST_PANELS = 16  # most reports of a plot, since more would be unreadable; the tables have all


def _save(figure, path, description=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={**NO_DATE, "Description": description})
    pyplot.close(figure)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines(panel, outcome, report, axis, rest):
    """Draws the variants over that axis, the other axes at `rest`, {axis: label}: lines when its values are numbers,
    else points. Without an axis (None) the variants are drawn side by side."""
    variants, axes = outcome.experiment.variants, outcome.grid.axes
    labels = list(axes[axis]) if axis else [None]
    ordered = all(label is not None and _is_number(label) for label in labels)
    for number, variant in enumerate(variants):
        points = outcome.report(report.name, variant).points
        samples = [points[tuple(label if each == axis else rest[each] for each in axes)] for label in labels]
        aside = number if not axis else (number - (len(variants) - 1) / 2) * 0.06
        panel.errorbar([place + aside for place in range(len(labels))], [sample.mean for sample in samples],
                       yerr=[sample.half for sample in samples], marker="." if ordered else "o", markersize=4,
                       linestyle="-" if ordered else "none", capsize=2, label=variant)
    if axis:
        panel.set_xticks(range(len(labels)), labels)
        panel.set_xlabel(axis)
    else:
        panel.set_xticks(range(len(variants)), variants)
        panel.margins(x=0.2)


def _columns(axes):
    """[{axis: label}]: all points of the axes, {axis: labels}."""
    return [dict(zip(axes, labels)) for labels in itertools.product(*axes.values())]


def _row(panels, outcome, report, axis, columns):
    """One report: a panel for each of the columns."""
    for panel, rest in zip(panels, columns):
        _lines(panel, outcome, report, axis, rest)
    if report.log:
        panels[0].set_yscale("log")
        panels[0].minorticks_off()
        least, most = panels[0].get_ylim()
        if most < 100 * least:  # powers of ten alone would be one tick or none
            panels[0].yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            panels[0].yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    else:
        panels[0].set_ylim(bottom=min(0, panels[0].get_ylim()[0]))
    label = f"{report.what}, {report.unit}" if report.unit else report.what
    panels[0].set_ylabel("\n".join(textwrap.wrap(label, 34)))


def _name(panel, place):
    """Says above a panel at which point it is, {axis: label}."""
    panel.set_title(", ".join(f"{axis} {label}" for axis, label in place.items()), fontsize=9)


def drawn(experiment, columns):
    """The reports for which a plot with `columns` columns has room; those of the papers' figures first."""
    by_weight = sorted(experiment.reports.values(), key=lambda report: not report.figures)
    kept = by_weight[:max(1, MOST_PANELS // columns)]
    return [report for report in experiment.reports.values() if report in kept]


def reports(outcome, path):
    """Writes an SVG: a row for each of the drawn() reports, a column for each point of the axes after the first."""
    experiment, axes = outcome.experiment, list(outcome.grid.axes)
    columns = _columns({axis: outcome.grid.axes[axis] for axis in axes[1:]})
    shown = drawn(experiment, len(columns))
    figure, panels = pyplot.subplots(len(shown), len(columns), squeeze=False, layout="constrained", sharex="col",
                                     sharey="row", figsize=(max(6, 3 * len(columns)), 2.6 * len(shown) + 0.5))
    for row, report in zip(panels, shown):
        _row(row, outcome, report, axes[0] if axes else None, columns)
        for panel in row:
            panel.label_outer()
    for panel, place in zip(panels[0], columns):
        _name(panel, place)
    if axes:
        panels[0][0].legend(fontsize=8)
    figure.suptitle(experiment.title, fontsize=10)
    _save(figure, path)


def headline(outcome, path, description):
    """Writes the SVG that stands for the paper: the headline's report over the first axis that it leaves open."""
    experiment, axes = outcome.experiment, outcome.grid.axes
    chosen = {axis: experiment.headline.at.get(axis, list(labels)) for axis, labels in axes.items()}
    opened = [axis for axis, labels in chosen.items() if len(labels) > 1]
    columns = _columns({axis: labels for axis, labels in chosen.items() if axis not in opened[:1]})
    figure, (panels,) = pyplot.subplots(1, len(columns), squeeze=False, layout="constrained", sharey="row",
                                        figsize=(max(6, 3 * len(columns)), 3))
    _row(panels, outcome, experiment.reports[experiment.headline.report], opened[0] if opened else None, columns)
    for panel, place in zip(panels, columns):
        _name(panel, {axis: label for axis, label in place.items() if axis in opened})
    panels[0].legend(fontsize=8)
    figure.suptitle(experiment.title, fontsize=10)
    _save(figure, path, description)
    # A hundredth of a pixel is enough, and nobody reads the indentation.
    text = re.sub(r"(\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8"))
    text = re.sub(r" *\n *", "\n", text)
    path.write_text(text, encoding="utf-8")
    if len(text) > LARGEST_HEADLINE:
        raise Mistake(f"{path} has {len(text)} bytes; draw fewer points")


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
