"""Targets of the evaluation: what sim/run's experiments say of the papers. The first run of all of them takes hours;
what has run is kept (sim/run --help)."""

import json
import subprocess

from . import MISSING, option, target
from ._builds import ROOT

QUICK = [option("--quick", action="store_true", help="the reduced grids, which are not the papers' scale")]


def _sim_run(*words):
    return subprocess.run([ROOT / "sim" / "run", *words], stdout=subprocess.PIPE, text=True)


def _after_all(verb, quick):
    """What sim/run says by this verb once all experiments have run, and whether one of them failed."""
    flags = ["--quick"] if quick else []
    failed = _sim_run("all", *flags).returncode != 0
    done = _sim_run(verb, *flags)
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
