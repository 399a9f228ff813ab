"""Runs both programs."""

import json
import pathlib
import shlex
import tempfile

from targets._builds import ROOT, build
from targets._simulate import simulate

from .cases import CASES


def build_ns3():
    """Builds the program that has ns-3 in it. Returns its path, as simulate() takes it."""
    return shlex.quote(str(build(ROOT, ["ns3_check"], preset="ns3") / "ns3_check"))


def write_routes(runs, folder):
    """{run: the arguments that give its flows' ways to another program} of those that have any."""
    arguments = {}
    for number, (key, run) in enumerate(runs.items()):
        if "routes" in run:
            file = pathlib.Path(folder) / f"{number}.json"
            file.write_text(json.dumps(run["routes"]), encoding="ascii")
            arguments[key] = ("--routes", file)
    return arguments


def run_both(ours, ns3, cases=None, seeds=None):
    """({case's name: its runs by seed} of our program, the same of ns-3). `seeds`: instead of each case's number."""
    cases = CASES if cases is None else cases
    keys = {case.name: [(case.name, seed) for seed in range(1, 1 + (seeds or case.seeds))] for case in cases}
    by_name = {case.name: case for case in cases}
    every = [key for name in keys for key in keys[name]]
    first = simulate(ours, {(name, seed): by_name[name].command(seed, by_name[name].ours) for name, seed in every})
    with tempfile.TemporaryDirectory() as folder:
        routes = write_routes(first, folder)
        second = simulate(ns3, {(name, seed): by_name[name].command(seed, (*by_name[name].theirs,
                                                                           *routes.get((name, seed), ())))
                                for name, seed in every})
    return [{name: [runs[key] for key in keys[name]] for name in keys} for runs in (first, second)]
