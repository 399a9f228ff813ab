"""Runs both programs."""

import pathlib
import subprocess
import tempfile

from lab import binary
from targets._builds import ROOT, build, dependencies
from targets._simulate import simulate

from .cases import CASES

SEEDS = 5


def build_ns3():
    """Builds the program that has ns-3 in it. Returns its path, as simulate() takes it."""
    dependencies("ns3")
    return str(build(ROOT, ["ns3_check"], preset="ns3") / "ns3_check")


def draw_paths(ns3, cases, seeds, folder):
    """{(case's name, seed): the file with the ways of the flows}, drawn once for both programs."""
    files = {}
    for case in cases:
        for seed in seeds if case.has_paths else ():
            files[case.name, seed] = pathlib.Path(folder) / f"{case.name}, {seed}.json"
            with open(files[case.name, seed], "w", encoding="ascii") as file:
                subprocess.run([binary(ns3), *case.command(seed), "--print-paths"], stdout=file, check=True)
    return files


def run_all(programs, ns3, cases=None, seeds=SEEDS):
    """[{case's name: its runs by seed} for each of `programs`]. `ns3`: which of them draws the paths."""
    cases, numbers = CASES if cases is None else cases, range(1, seeds + 1)
    with tempfile.TemporaryDirectory() as folder:
        paths = draw_paths(ns3, cases, numbers, folder)
        words = {(case.name, seed): case.command(seed, paths.get((case.name, seed)))
                 for case in cases for seed in numbers}
        results = [simulate(program, words) for program in programs]
    return [{case.name: [runs[case.name, seed] for seed in numbers] for case in cases} for runs in results]
