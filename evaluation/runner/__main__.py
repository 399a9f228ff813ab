"""python3 -m runner ...: see evaluation/run."""

import argparse
import json
import os
import pathlib
import sys

from targets._builds import build

from . import judge, results, tables
from .document import Mistake
from .grid import cells_of, grid_of, series_cell
from .outcome import Outcome
from .record import Record, commit_of
from .rivals import rivals
from .runs import Failure, Store, run_all
from .spec import FOLDER, LEAST_SEEDS, ROOT, load_all, load_figures

JUDGING = ("claims", "coverage", "ratios", "rivals")
VERBS = ("list", "all", "recorded", "results", *JUDGING)
EPILOG = ("list: what there is. NAME..., all: runs them and prints their tables. claims: the papers' claims, met or "
          "not by the runs that are kept, as JSON. coverage: the figures that have no experiment, number or interval. "
          "ratios: what variants are to those that they are compared with. rivals VARIANT: its p99 against the best "
          "other variant's in each experiment that has both. Of a grid that was broken off, these four look at the "
          "first seeds, up to the first that lacks a run, two at least; \"seeds\" says how many. An experiment of "
          "which a run has failed is not judged. --recorded: they judge the runs that evaluation/runs holds, which "
          "were of the commits that recorded tells, and take seconds; NAME --recorded prints these runs' tables. "
          "results: docs/results.md of the recorded runs, printed or, with --write, written with its plots.")


def _parse():
    parser = argparse.ArgumentParser(prog="evaluation/run", description="Runs the experiments of "
                                     "evaluation/experiments and sets their figures beside the papers'.", epilog=EPILOG)
    parser.add_argument("wanted", nargs="+",
                        metavar="list | NAME... | all | recorded | results | claims | coverage | ratios | "
                        "rivals VARIANT")
    parser.add_argument("--quick", action="store_true", help="the reduced grids: all in less than ten minutes")
    parser.add_argument("--seeds", type=int, metavar="N", help="so many, instead of each grid's own")
    parser.add_argument("--jobs", type=int, metavar="N", default=os.cpu_count(), help="runs at a time (%(default)s)")
    parser.add_argument("--plot", action="store_true", help="draws the reports as NAME.svg into the folder plots of "
                        "DIR")
    parser.add_argument("--series", action="store_true", help="instead of the grid, the one run of which windows, "
                        "rates, round trips and queues are drawn over time, as NAME-time.svg")
    parser.add_argument("--write", action="store_true", help="the runs into evaluation/runs, and docs/results.md anew")
    parser.add_argument("--commit", help="with --write: that of the programs, where BRAID_BIN names others than this "
                        "checkout's")
    parser.add_argument("--recorded", action="store_true", help="of the runs that evaluation/runs holds: nothing runs")
    parser.add_argument("--without", action="append", default=[], metavar="VARIANT", help="rivals: one that is none")
    parser.add_argument("--results", type=pathlib.Path, metavar="DIR", default=ROOT / "build" / "experiments",
                        help="where the runs' figures are kept: what is there does not run again (%(default)s)")
    options = parser.parse_args()
    verb, *rest = options.wanted
    if verb == "rivals" and len(rest) != 1:
        parser.error("rivals takes the name of one variant")
    if verb in VERBS and verb != "rivals" and rest:
        parser.error(f"{verb} stands alone")
    if options.recorded and (verb in ("list", "recorded", "results") or options.quick or options.seeds):
        parser.error("--recorded is for experiments and for what judges them, and of the full grids")
    if options.recorded and (options.commit or options.write or options.series):
        parser.error("--recorded leaves the record and its commit, and runs nothing; results --write writes the page")
    if options.write and options.quick:
        parser.error("--write is for the full grids")
    if options.write and options.seeds and options.seeds < LEAST_SEEDS:
        parser.error(f"--write is for {LEAST_SEEDS} seeds at least")
    if any(number is not None and number < 1 for number in (options.seeds, options.jobs)):
        parser.error("--seeds and --jobs are at least 1")
    return options


def _list(experiments):
    for experiment in experiments.values():
        figures = ", ".join(sorted({figure for _, figure in experiment.figures()}))
        runs = [sum(1 for _ in cells_of(experiment, grid)) for grid in (experiment.full, experiment.quick)]
        print(f"{experiment.name:18} {experiment.paper:9} {figures:24} {runs[0]:5} runs, quick {runs[1]:4}  "
              f"{experiment.title}")


def _plot(outcome, options):
    from . import draw  # it needs matplotlib, which nothing else does
    path = options.results / "plots" / f"{outcome.experiment.name}.svg"
    draw.reports(outcome, path)
    print(f"drawn: {path}", file=sys.stderr)


def _run(experiments, options, store):
    """Runs them, and prints their tables, draws and writes as is wanted. Returns the names of those that failed."""
    wanted, grids, commit = [], {}, options.commit or commit_of()
    for experiment in experiments.values():
        grids[experiment.name] = grid_of(experiment, options.quick, options.seeds)
        wanted += [(experiment, cell) for cell in cells_of(experiment, grids[experiment.name])]
    found, failed = run_all(wanted, store, options.jobs), []
    for experiment in experiments.values():
        outcome = Outcome(experiment, grids[experiment.name], found)
        for cell, why in outcome.failures:
            print(f"{experiment.name}: {' '.join(cell.words)}: {why}", file=sys.stderr)
        if outcome.failures:
            failed.append(experiment.name)
            continue
        print(f"# {experiment.name}: {experiment.title}\n\n{tables.block(outcome, options.quick)}", flush=True)
        if options.plot:
            _plot(outcome, options)
        if options.write:
            runs = {cell: found[experiment.name, cell] for cell in cells_of(experiment, outcome.grid)}
            Record().save(experiment.name, runs, commit)
    return failed


def _series(experiments, options, store):
    """Runs what is drawn over time, and draws it. Returns the names of those that failed."""
    from . import draw
    cells = {name: series_cell(experiment) for name, experiment in experiments.items() if experiment.series}
    if not cells:
        raise Mistake(f"{FOLDER}: none of {', '.join(experiments)} has a series")
    found, failed = run_all([(experiments[name], cell) for name, cell in cells.items()], store, options.jobs), []
    for name, cell in cells.items():
        result, plot = found[name, cell], experiments[name].series
        if isinstance(result, Failure):
            print(f"{name}: {' '.join(cell.words)}: {result}", file=sys.stderr)
            failed.append(name)
            continue
        path = options.results / "plots" / f"{name}-time.svg"
        draw.over_time(plot, draw.read_series(store.series(cell), plot.subflows), result.get("trace_mbit"), path)
        print(f"drawn: {path}", file=sys.stderr)
    return failed


def _recorded(experiments, options):
    """Prints the tables of the runs that are recorded, and draws them where that is wanted. Returns the names of the
    experiments of which that was not possible."""
    record, failed = Record(), []
    for name, experiment in experiments.items():
        try:
            outcome = judge.of_what_is_kept(experiment, record)
            if outcome.failures:
                cell, why = outcome.failures[0]
                raise Mistake(f"{' '.join(cell.words)}: {why}")
            print(f"# {name}: {experiment.title}\n\n{tables.block(outcome)}", flush=True)
            if options.plot:
                _plot(outcome, options)
        except Mistake as mistake:
            print(f"{name}: {mistake}", file=sys.stderr)
            failed.append(name)
    return failed


def _results(write):
    """Prints the page of the recorded runs, or writes it and its plots."""
    outcomes = judge.outcomes(load_all(), Record())
    if write:
        results.write(outcomes, load_figures())
    else:
        print(results.page(outcomes, load_figures()), end="")


def _told(verb, experiments, known, options):
    """Prints the results of the stored runs, `known`."""
    if verb == "ratios":
        return judge.ratios(experiments, known)
    if verb == "rivals":
        return rivals(known, options.wanted[1], leaving=options.without)
    return getattr(judge, verb)(experiments, load_figures(), known)


def main():
    options = _parse()
    experiments, verb, store = load_all(), options.wanted[0], Store(options.results)
    if verb == "list":
        _list(experiments)
        return 0
    if verb == "recorded":
        print(json.dumps(judge.recorded(experiments, Record()), indent=1))
        return 0
    if verb == "results":
        _results(options.write)
        return 0
    if verb not in VERBS:
        unknown = [name for name in options.wanted if name not in experiments]
        if unknown:
            raise Mistake(f"{FOLDER}: no experiment {', '.join(unknown)}; evaluation/run list names them")
        experiments = {name: experiments[name] for name in options.wanted}
    if "BRAID_BIN" not in os.environ and not options.recorded:
        build(ROOT, sorted({cell.words[0] for experiment in experiments.values()
                            for cell in cells_of(experiment, experiment.quick)}))
    if verb in JUDGING:
        known = judge.outcomes(experiments, Record() if options.recorded else store, options.quick)
        print(json.dumps(_told(verb, experiments, known, options), indent=1, ensure_ascii=False))
        return 0
    if options.recorded:
        failed = _recorded(experiments, options)
    elif options.series:
        failed = _series(experiments, options, store)
    else:
        failed = _run(experiments, options, store)
    if options.write and not failed:
        _results(write=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Mistake as mistake:
        sys.exit(f"evaluation/run: {mistake}")
    except KeyboardInterrupt:
        sys.exit("evaluation/run: broken off; what has run is kept")
