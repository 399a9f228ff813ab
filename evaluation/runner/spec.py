"""The contents of a file of evaluation/experiments."""

import dataclasses
import pathlib
import re
import shlex
import string

from . import document
from .document import Mistake
from .formula import Formula
from .samples import average, largest, smallest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "evaluation" / "experiments"
FIGURES = FOLDER / "figures.yaml"
LEAST_SEEDS = 5
RELATIONS = ("at most", "at least", "about")
_NAME = re.compile(r"[a-z]\w*")
_GRID_KEYS = ("seeds", "axes", "settings")
_KEYS = ("paper", "title", "command", "settings", "axes", "variants", "seeds", "quick", "limit", "reports", "claims",
         "series", "headline", "why")
_REPORT_KEYS = ("figure", "what", "unit", "value", "against", "log")
_CLAIM_KEYS = ("figure", "what", "at", "value", "unit", "paper", "relation", "limit", "within", "why",
               "input")
_HEADLINE_KEYS = ("report", "at")
_SERIES_KEYS = ("title", "variant", "at", "settings", "interval", "unit", "subflows", "queues")
# The functions that a formula over all runs may call, in addition to the reports.
OF_ALL_RUNS = {"max": largest, "min": smallest, "mean": average}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of a program: a variant at a point of the axes with a seed."""

    variant: str
    point: tuple
    seed: int
    words: tuple
    series: bool = False


@dataclasses.dataclass(frozen=True)
class Grid:
    """The runs of an experiment: {axis: {label: words}}, and the constant settings {placeholder: words}."""

    seeds: int
    axes: dict
    settings: dict


@dataclasses.dataclass(frozen=True)
class Report:
    """A result of each run. `figures`: the paper's figures that it reproduces; `against`: the reference variant for
    ratios, if any."""

    name: str
    figures: list
    what: str
    unit: str
    value: Formula
    against: str
    log: bool


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim of the paper and how it is judged: the value at the points `at` these labels, {axis: [label]}, must have
    the given relation to the limit. `within`: the tolerance, as a share of the limit. `input`: the claim is about an
    input of Braid's own model, such as the rates that a generator draws from, or only about a formula. Such a claim
    cannot fail. It is shown, and counts neither as met nor as missed."""

    name: str
    figures: list
    what: str
    at: dict
    value: Formula
    unit: str
    paper: str
    relation: str
    limit: float
    within: float
    why: str
    input: bool

    def holds(self, value):
        margin = self.within * abs(self.limit)
        if self.relation == "at most":
            return value <= self.limit + margin
        if self.relation == "at least":
            return value >= self.limit - margin
        return abs(value - self.limit) <= margin


@dataclasses.dataclass(frozen=True)
class OverTime:
    """A plot of subflows over time, from a separate run. `subflows`: name in the series -> in the legend; `queues`: one
    subflow of each bottleneck -> the bottleneck's name."""

    title: str
    variant: str
    point: tuple
    settings: dict
    interval: float  # ms
    milliseconds: bool
    subflows: dict
    queues: dict


@dataclasses.dataclass(frozen=True)
class Headline:
    """The plot that stands for a paper in docs/results.md: one report, at these labels, {axis: [label]}."""

    report: str
    at: dict


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A file of evaluation/experiments."""

    name: str
    paper: str
    title: str
    command: str
    variants: dict
    full: Grid
    quick: Grid
    limit: float
    reports: dict
    claims: list
    series: OverTime | None
    headline: Headline | None
    why: str

    def figures(self):
        """(paper, figure) of everything that it reproduces or judges."""
        return {(self.paper, figure) for each in [*self.reports.values(), *self.claims] for figure in each.figures}

    def words(self, grid, variant, labels, seed):
        """The command line at that point, {axis: label}."""
        values = {**grid.settings, **{axis: grid.axes[axis][label] for axis, label in labels.items()},
                  "variant": self.variants[variant], "seed": seed}
        return tuple(shlex.split(self.command.format(**values)))


def _placeholders(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def _formula(section, key):
    try:
        return Formula(section.text(key))
    except ValueError as error:
        raise section.mistake(key, str(error), "write arithmetic of names and calls") from None


def _is_yes(section, key):
    """True when that key is "yes"; False without it."""
    word = section.text(key, "no")
    if word not in ("yes", "no"):
        raise section.mistake(key, "is neither yes nor no", "write one of them")
    return word == "yes"


def _report(name, section, variants):
    against = section.text("against", "")
    if against and against not in variants:
        raise section.mistake("against", f"names no variant: {against}", f"one of {', '.join(variants)}")
    return Report(name, section.texts("figure", []), section.text("what"), section.text("unit", ""),
                  _formula(section, "value"), against, _is_yes(section, "log"))


def _places(section, key, axes):
    """{axis: [label]}: labels of the full grid's axes, under that key; {} without it."""
    if key not in section:
        return {}
    places = section.section(key, list(axes))
    for axis in places.keys():
        unknown = [label for label in places.texts(axis) if label not in axes[axis]]
        if unknown:
            raise places.mistake(axis, f"has {', '.join(unknown)}, which the full grid has not",
                                 f"some of {', '.join(axes[axis])}")
    return {axis: places.texts(axis) for axis in places.keys()}


def _claim(name, section, known, axes):
    value = _formula(section, "value")
    unknown = value.names - known
    if unknown:
        raise section.mistake("value", f"names what is not there: {', '.join(sorted(unknown))}",
                              f"there are {', '.join(sorted(known))}")
    relation = section.text("relation")
    if relation not in RELATIONS:
        raise section.mistake("relation", f"is {relation}", f"one of: {', '.join(RELATIONS)}")
    paper = section.text("paper")
    if "limit" in section:
        limit = section.number("limit")
    else:
        try:
            limit = float(paper)
        except ValueError:
            raise section.mistake("paper", f"is no number: {paper}", "say by `limit` what is judged") from None
    within = section.number("within", 0.0, 0)
    if relation == "about" and within == 0:
        raise section.mistake("relation", "is about without a width", "add `within`, a share of the limit")
    return Claim(name, section.texts("figure"), section.text("what"), _places(section, "at", axes), value,
                 section.text("unit", ""), paper, relation, limit, within, section.text("why", ""),
                 _is_yes(section, "input"))


def _choices(section):
    return {axis: section.choices(axis) for axis in section.keys()}


def _quick(section, full):
    """The full grid with fewer seeds, values of axes, and other settings."""
    quick = section.section("quick", _GRID_KEYS)
    fewer = _places(quick, "axes", full.axes)
    axes = {axis: {label: words for label, words in choices.items() if label in fewer.get(axis, choices)}
            for axis, choices in full.axes.items()}
    settings = quick.named_texts("settings")
    for name in settings.keys() - full.settings.keys():
        raise quick.section("settings", None).mistake(name, "is no setting", f"known: {', '.join(full.settings)}")
    return Grid(quick.whole("seeds", full.seeds), axes, {**full.settings, **settings})


def _over_time(section, variants, grid):
    variant = section.text("variant")
    if variant not in variants:
        raise section.mistake("variant", f"is no variant: {variant}", f"one of {', '.join(variants)}")
    places = section.named_texts("at")
    if places.keys() != grid.axes.keys() or any(label not in grid.axes[axis] for axis, label in places.items()):
        raise section.mistake("at", "is no point of the grid", f"give a value of each of: {', '.join(grid.axes)}")
    unit = section.text("unit", "s")
    if unit not in ("s", "ms"):
        raise section.mistake("unit", f"is {unit}", "write s or ms")
    return OverTime(section.text("title"), variant, tuple(places[axis] for axis in grid.axes),
                    section.named_texts("settings"), section.number("interval", least=0), unit == "ms",
                    section.named_texts("subflows"), section.named_texts("queues"))


def _headline(section, reports, axes):
    report = section.text("report")
    if report not in reports:
        raise section.mistake("report", f"names no report: {report}", f"one of {', '.join(reports)}")
    return Headline(report, _places(section, "at", axes))


def load(file):
    """The experiment that this file describes. Raises Mistake."""
    root = document.load(file, _KEYS)
    variants = root.named_texts("variants")
    if not variants:
        raise root.mistake("variants", "has none", "name at least one: NAME: words of the command line")
    axes = _choices(root.section("axes", None)) if "axes" in root else {}
    settings = root.named_texts("settings")
    full = Grid(root.whole("seeds", least=LEAST_SEEDS), axes, settings)
    reports = {name: _report(name, section, variants)
               for name, section in root.named_sections("reports", _REPORT_KEYS).items()}
    if not reports:
        raise root.mistake("reports", "has none", "say what of a run's figures is reported")
    names = [*variants, *axes, *reports, *OF_ALL_RUNS]
    for name in names:
        if not _NAME.fullmatch(name) or names.count(name) > 1:
            raise root.mistake("variants" if name in variants else "axes" if name in axes else "reports",
                               f"has {name}, which formulas cannot tell from others",
                               "use small letters, digits and _, and each name once")
    claims = [_claim(name, section, set(names), axes)
              for name, section in root.named_sections("claims", _CLAIM_KEYS).items()]
    command = root.text("command")
    wanted, given = _placeholders(command), {"seed", "variant", *axes, *settings}
    if wanted != given:
        raise root.mistake("command", f"and the rest differ in {', '.join(sorted(wanted ^ given))}",
                           "each axis, each setting, {variant} and {seed} once in it, and no others")
    series = None
    if "series" in root:
        series = _over_time(root.section("series", _SERIES_KEYS), variants, full)
        for name in series.settings.keys() - settings.keys():
            raise root.section("series", None).mistake("settings", f"has {name}, which is none", "see above")
    headline = _headline(root.section("headline", _HEADLINE_KEYS), reports, axes) if "headline" in root else None
    return Experiment(file.stem, root.text("paper"), root.text("title"), command, variants, full,
                      _quick(root, full) if "quick" in root else full, root.number("limit", 600.0, 1), reports, claims,
                      series, headline, root.text("why", ""))


def load_all(folder=FOLDER):
    """{name: experiment} of a folder, by name."""
    files = sorted(file for file in folder.glob("*.yaml") if file.name != FIGURES.name)
    experiments = {file.stem: load(file) for file in files}
    seen = {}
    for experiment in experiments.values():
        unique = [(claim.name, f"claim {claim.name}") for claim in experiment.claims]
        unique += [("", "a headline")] if experiment.headline else []
        for name, what in unique:
            other = seen.setdefault((experiment.paper, name), experiment.name)
            if other != experiment.name:
                raise Mistake(f"{folder / other}.yaml and {experiment.name}.yaml: {what} is in both; rename one or "
                              "leave it out")
    return experiments


def load_figures(file=FIGURES):
    """{(paper, figure): its headline} of all figures of the papers, and of what their abstracts say."""
    root = document.load(file, None)
    return {(paper, figure): headline for paper in root.keys()
            for figure, headline in root.named_texts(paper).items()}
