"""Targets of the evaluation: the results of evaluation/run's experiments compared with the papers. The first run of all
experiments takes many hours; results are kept (evaluation/run --help). With --recorded nothing runs, and the results in
evaluation/runs are judged."""

import json
import math
import subprocess

from . import MISSING, always, option, target
from ._builds import ROOT

QUICK = [option("--quick", action="store_true", help="the reduced grids, which are not the papers' scale")]
RECORDED = option("--recorded", always, action="store_true",
                  help="judges the runs behind docs/results.md, measures nothing")


def evaluation_run(*words):
    """evaluation/run with these words. Its stdout is the caller's."""
    return subprocess.run([ROOT / "evaluation" / "run", *words], stdout=subprocess.PIPE, text=True)


def _recorded(wanted):
    """The detail of a target about the recorded runs of `wanted` that it judges."""
    found = json.loads(evaluation_run("recorded").stdout)
    found = {name: each for name, each in found.items() if wanted == ["all"] or name in wanted}
    known = {name: f'{each["seeds"]} of {each["of"]} seeds, {each["commit"]}' for name, each in found.items()}
    lacking = [name for name in known if found[name]["seeds"] < found[name]["of"]]
    detail = {"judged, nothing was run": known,
              "flows that had not ended with their run": {name: each["unfinished"] for name, each in found.items()
                                                          if each["unfinished"]}}
    return detail | ({MISSING: f"not recorded with all seeds: {', '.join(lacking)}"} if lacking else {})


def run_says(verb, wanted, quick, recorded):
    """(what evaluation/run says by this verb once `wanted` have run, detail)."""
    detail, flags = {}, ["--quick"] if quick else []
    if quick and recorded:
        raise ValueError("what is recorded is of the full grids: --quick or --recorded")
    if quick:
        detail[MISSING] = "reduced grids: a look, and no verdict"
    if recorded:
        detail |= _recorded(wanted)
        flags.append("--recorded")
    elif evaluation_run(*wanted, *flags).returncode != 0:
        detail[MISSING] = "an experiment failed, see above"
    done = evaluation_run(*verb, *flags)
    done.check_returncode()
    return json.loads(done.stdout), detail


@target("eval.1", "claims of the papers' abstracts and figures that are met or beaten / all of them; a figure without "
        "a claim counts as one that is not met, what is an input of our own models not at all", "share", at_least=0.9,
        options=[*QUICK, RECORDED])
def claims(quick, recorded):
    found, detail = run_says(["claims"], ["all"], quick, recorded)
    missed = [claim for claim in found["claims"] if not claim["met"]]
    detail |= {"met": found["met"], "all": found["all"],
               "missed": {f'{claim["paper"]} {claim["claim"]}':
                          {key: claim.get(key) for key in ("figures", "what", "unit", "says", "relation", "limit",
                                                           "value", "interval", "why", "missing")
                           if claim.get(key)} for claim in missed},
               "inputs, not counted": [f'{claim["paper"]} {claim["claim"]}' for claim in found["inputs"]],
               "without a claim": found["without a claim"]}
    return found["share"], detail


@target("eval.7", "figures of the papers without an experiment, a number and an interval of five seeds or more",
        "figures", at_most=0, options=[*QUICK, RECORDED])
def figures(quick, recorded):
    lacking, detail = run_says(["coverage"], ["all"], quick, recorded)
    detail |= {entry["figure"]: f'{entry["lacks"]} ({entry["headline"]})' for entry in lacking}
    return len(lacking), detail


def _worst(found):
    """The worst ratio of what evaluation/run rivals says, and all above 1 in words."""
    def words(entry):
        place = " ".join(f"{axis} {label}" for axis, label in entry["point"].items())
        return f'{entry["experiment"]} {place}'.strip()
    undefined = [words(each) for each in found if math.isnan(each["ratio"])]
    behind = {words(each): f'{each["ratio"]:.3f} ± {each["interval"]:.3f} of {each["best"]}, '
                           f'{each["value"]:.4g} against {each["of_the_best"]:.4g}'
              for each in found if each["ratio"] > 1}
    detail = {"points": len(found), "behind the best": behind}
    if undefined:
        detail[MISSING] = f"no ratio at {', '.join(undefined)}"
    return max((each["ratio"] for each in found), default=None), detail


@target("eval.2", "p99 of all of Braid together (adaptive, AMP, shim) / of the best part alone (shim, FUSO, CoFUSO, "
        "AMP), worst point of all experiments, mean of the seeds", "ratio", at_most=1.05, options=[*QUICK, RECORDED])
def together(quick, recorded):
    found, detail = run_says(["rivals", "together", "--without", "tcp", "--without", "dctcp"], ["braid-together"],
                             quick, recorded)
    value, worst = _worst(found)
    return value, worst | detail


@target("eval.5", "p99 of `adaptive` / of the best other policy, worst point of all experiments, cold and warm, mean "
        "of the seeds", "ratio", at_most=1.05, options=[*QUICK, RECORDED])
def adaptive(quick, recorded):
    found, detail = run_says(["rivals", "adaptive"], ["all"], quick, recorded)
    value, worst = _worst(found)
    return value, worst | detail
