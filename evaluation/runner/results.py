"""docs/results.md: the headline plot of each paper, and each claim in a line. Made from the recorded runs."""

import hashlib
import re

from . import judge
from .document import Mistake
from .spec import ROOT
from .tables import interval, judged, shown, table, wanted, with_unit

PAGE, PLOTS = ROOT / "docs" / "results.md", ROOT / "docs" / "plots"
MOST_LINES, WIDEST = 200, 300
PAPERS = {"fuso": "FUSO", "cofuso": "CoFUSO", "amp": "AMP", "tracks": "T-RACKs", "braid": "All of Braid together",
          "internet": "The Internet's paths"}
INTRO = """# Results

These are the claims of the papers FUSO, CoFUSO, AMP and T-RACKs beside what Braid's own code does in virtual time.
{met} of {all} are met. [evaluation](../evaluation/README.md) says how they are measured and judged.
`evaluation/run results --write` makes this page and its plots from the recorded runs.

- *ours* is the mean over the seeds; *met* compares it with the paper's number, or with the bound after "judged".
- Claims that differ in one word share a line; their numbers are in the order of the words.
"""


def headlines(outcomes):
    """{paper: the outcome of the experiment that has its headline}, in the order of PAPERS."""
    found = {outcome.experiment.paper: outcome for outcome in outcomes.values() if outcome.experiment.headline}
    lacking = [paper for paper in PAPERS if paper not in found]
    if lacking:
        raise Mistake(f"no recorded experiment with a headline of {', '.join(lacking)}")
    return {paper: found[paper] for paper in PAPERS}


def fingerprint(outcome):
    """A hash of the numbers of which a headline is drawn; its plot carries it."""
    report = outcome.experiment.headline.report
    numbers = [f"{variant} {point} {sample.mean:.6g} {sample.half:.6g}" for variant in outcome.experiment.variants
               for point, sample in outcome.report(report, variant).points.items()]
    return f"{outcome.experiment.name} {report} {hashlib.sha256(chr(10).join(numbers).encode()).hexdigest()[:16]}"


def _by_figure(outcome):
    """Sorts fuso-2 before fuso-10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", outcome.experiment.name)]


def _differing(one, other):
    """Where the parts between commas of two claims' words differ; None where they are not alike but for one part."""
    parts = one.what.split(", "), other.what.split(", ")
    places = [place for place, (a, b) in enumerate(zip(*parts)) if a != b]
    alike = (one.figures, one.unit, one.relation) == (other.figures, other.unit, other.relation)
    return places[0] if alike and len(parts[0]) == len(parts[1]) > 1 and len(places) == 1 else None


def _one(texts):
    """The texts in a row, or the one that all of them are."""
    return texts[0] if len(set(texts)) == 1 else "; ".join(texts)


def _line(verdicts):
    """A row of the table, of claims that differ in one part of their words."""
    first = verdicts[0].claim
    what = first.what
    if len(verdicts) > 1:
        place = _differing(first, verdicts[1].claim)
        rest = first.what.split(", ")
        rest.pop(place)
        what = f"{', '.join(rest)}: {'; '.join(each.claim.what.split(', ')[place] for each in verdicts)}"
    samples = [each.sample for each in verdicts]
    return (", ".join(first.figures), with_unit(what, first.unit), _one([wanted(each.claim) for each in verdicts]),
            _one([shown(sample.mean) if sample else "–" for sample in samples]),
            _one([interval(sample) for sample in samples]), _one([judged(each) for each in verdicts]))


def _grouped(verdicts):
    """Lists of verdicts that share a line."""
    groups = []
    for verdict in verdicts:
        last = groups[-1] if groups else []
        places = {_differing(other.claim, verdict.claim) for other in last}
        if len(places) == 1 and None not in places and sum(map(len, _line([*last, verdict]))) < WIDEST - 30:
            last.append(verdict)
        else:
            groups.append([verdict])
    return groups


def page(outcomes, figures):
    """The text of the page. `outcomes`: of judge.outcomes(), `figures`: of spec.load_figures()."""
    experiments = {name: outcome.experiment for name, outcome in outcomes.items()}
    found = judge.claims(experiments, figures, outcomes)
    parts = [INTRO.format(**found)]
    for paper, headline in headlines(outcomes).items():
        own = sorted((outcome for outcome in outcomes.values() if outcome.experiment.paper == paper), key=_by_figure)
        verdicts = [[outcome.verdict(claim) for claim in outcome.experiment.claims if not claim.input]
                    for outcome in own]
        rows = [_line(group) for each in verdicts for group in _grouped(each)]
        met, count = sum(each.met for every in verdicts for each in every), sum(map(len, verdicts))
        title = f"{PAPERS[paper]}: {met} of {count} met" if rows else PAPERS[paper]
        plot = f"[![{headline.experiment.title}](plots/{paper}.svg)](../evaluation/{paper}.md)"
        parts.append(f"## {title}\n{plot}\n")
        if rows:
            parts.append(table(("figure", "claim", "paper", "ours", "95 % interval", "verdict"), rows))
    return "\n".join(parts)


def write(outcomes, figures):
    """Writes the page, and draws its plots."""
    from . import draw  # it needs matplotlib, which nothing else does
    text = page(outcomes, figures)
    if len(text.splitlines()) > MOST_LINES:
        raise Mistake(f"{PAGE} would have {len(text.splitlines())} lines, {MOST_LINES} may be")
    PAGE.write_text(text, encoding="utf-8")
    for paper, outcome in headlines(outcomes).items():
        draw.headline(outcome, PLOTS / f"{paper}.svg", fingerprint(outcome))
