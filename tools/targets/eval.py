"""Targets of the evaluation: what sim/run's experiments say of the papers. The first run of all of them takes hours;
what has run is kept (sim/run --help)."""

import json
import math
import subprocess

from . import MISSING, option, target
from ._builds import ROOT

QUICK = [option("--quick", action="store_true", help="the reduced grids, which are not the papers' scale")]


def sim_run(*words):
    """sim/run with these words. Its stdout is the caller's."""
    return subprocess.run([ROOT / "sim" / "run", *words], stdout=subprocess.PIPE, text=True)


def _after_all(verb, quick):
    """What sim/run says by this verb once all experiments have run, and whether one of them failed."""
    flags = ["--quick"] if quick else []
    failed = sim_run("all", *flags).returncode != 0
    done = sim_run(*verb.split(), *flags)
    done.check_returncode()
    return json.loads(done.stdout), {MISSING: "an experiment failed, see above"} if failed else {}


@target("eval.1", "claims of the papers' abstracts and figures that are met or beaten / all of them; a figure without "
        "a claim counts as one that is not met", "share", at_least=0.9, options=QUICK)
def claims(quick):
    found, detail = _after_all("claims", quick)
    missed = [claim for claim in found["claims"] if not claim["met"]]
    detail |= {"met": found["met"], "all": found["all"],
               "missed": {f'{claim["paper"]} {claim["claim"]}':
                          {key: claim.get(key) for key in ("figures", "what", "unit", "says", "relation", "limit",
                                                           "value", "interval", "why", "missing")
                           if claim.get(key)} for claim in missed},
               "without a claim": found["without a claim"]}
    return found["share"], detail


@target("eval.7", "figures of the papers without an experiment, a number and an interval of five seeds or more",
        "figures", at_most=0, options=QUICK)
def figures(quick):
    lacking, detail = _after_all("coverage", quick)
    detail |= {entry["figure"]: f'{entry["lacks"]} ({entry["headline"]})' for entry in lacking}
    return len(lacking), detail


def _worst(found):
    """The worst ratio of what sim/run rivals says, and all above 1 in words."""
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
        "AMP), worst point of all experiments, mean of the seeds", "ratio", at_most=1.05, options=QUICK)
def together(quick):
    flags = ["--quick"] if quick else []
    failed = sim_run("braid-together", *flags).returncode != 0
    done = sim_run("rivals", "together", "--without", "tcp", *flags)
    done.check_returncode()
    value, detail = _worst(json.loads(done.stdout))
    return value, detail | ({MISSING: "an experiment failed, see above"} if failed else {})


@target("eval.5", "p99 of `adaptive` / of the best other policy, worst point of all experiments, cold and warm, mean "
        "of the seeds", "ratio", at_most=1.05, options=QUICK)
def adaptive(quick):
    found, detail = _after_all("rivals adaptive", quick)
    value, worst = _worst(found)
    return value, detail | worst
