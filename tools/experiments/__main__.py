"""python3 -m experiments ...: see sim/run."""

import argparse
import json
import os
import pathlib
import sys

from targets._builds import build

from . import judge, pages
from .document import Mistake
from .grid import cells_of, grid_of, series_cell
from .outcome import Outcome
from .record import Record, commit_of
from .rivals import rivals
from .runner import Store, run_all
from .spec import FOLDER, LEAST_SEEDS, ROOT, load_all, load_figures

JUDGING = ("claims", "coverage", "ratios", "rivals")
VERBS = ("list", "all", "recorded", *JUDGING)
EPILOG = ("list: what there is. NAME..., all: runs them and prints their tables. claims: the papers' claims, met or "
          "not by the runs that are kept, as JSON. coverage: the figures that have no experiment, number or interval. "
          "ratios: what variants are to those that they are compared with. rivals VARIANT: its p99 against the best "
          "other variant's in each experiment that has both. Of a grid that was broken off, these four look at the "
          "first seeds, up to the first that lacks a run, two at least; \"seeds\" says how many. An experiment of "
          "which a run has failed is not judged. --recorded: they judge the runs behind docs/evaluation, which were "
          "of the commits that recorded tells, and take seconds; NAME --recorded prints these runs' tables.")


def _parse():
    parser = argparse.ArgumentParser(prog="sim/run", description="Runs the experiments of sim/experiments and sets "
                                     "their figures beside the papers'.", epilog=EPILOG)
    parser.add_argument("wanted", nargs="+",
                        metavar="list | NAME... | all | recorded | claims | coverage | ratios | rivals VARIANT")
    parser.add_argument("--quick", action="store_true", help="the reduced grids: all in less than ten minutes")
    parser.add_argument("--seeds", type=int, metavar="N", help="so many, instead of each grid's own")
    parser.add_argument("--jobs", type=int, metavar="N", default=os.cpu_count(), help="runs at a time (%(default)s)")
    parser.add_argument("--write", action="store_true", help="tables, plots and runs into docs/evaluation")
    parser.add_argument("--commit", help="with --write: that of the programs, where BRAID_BIN names others than this "
                        "checkout's")
    parser.add_argument("--recorded", action="store_true", help="of the runs that docs/evaluation holds: nothing "
                        "runs. With NAME and --write the tables anew, after a change of words or claims")
    parser.add_argument("--without", action="append", default=[], metavar="VARIANT", help="rivals: one that is none")
    parser.add_argument("--results", type=pathlib.Path, metavar="DIR", default=ROOT / "build" / "experiments",
                        help="where the runs' figures are kept: what is there does not run again (%(default)s)")
    options = parser.parse_args()
    verb, *rest = options.wanted
    if verb == "rivals" and len(rest) != 1:
        parser.error("rivals takes the name of one variant")
    if verb in VERBS and verb != "rivals" and rest:
        parser.error(f"{verb} stands alone")
    if options.recorded and (verb in ("list", "recorded") or options.quick or options.seeds):
        parser.error("--recorded is for experiments and for what judges them, and of the full grids")
    if options.recorded and (options.commit or options.write and verb in JUDGING):
        parser.error("--recorded leaves the record and its commit; with NAME it may --write the tables")
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


def _write_table(outcome, quick=False):
    from . import draw  # it needs matplotlib, which nothing else does
    experiment = outcome.experiment
    text = experiment.page.read_text(encoding="utf-8")
    text = pages.rewrite(text, experiment.name, pages.block(outcome, quick), experiment.page)
    experiment.page.write_text(text, encoding="utf-8")
    draw.reports(outcome, experiment.page.with_name(f"{experiment.name}.svg"))


def _write(outcome, quick, store, results, commit):
    from . import draw
    experiment = outcome.experiment
    _write_table(outcome, quick)
    if experiment.series:
        cell, plot = series_cell(experiment), experiment.series
        draw.over_time(plot, draw.read_series(store.series(cell), plot.subflows),
                       store.load(cell)["result"].get("trace_mbit"),
                       experiment.page.with_name(f"{experiment.name}-time.svg"))
    if not quick:
        runs = {cell: results[experiment.name, cell] for cell in cells_of(experiment, outcome.grid)}
        Record().save(experiment.name, runs, commit)


def _run(experiments, options, store):
    """Runs them and prints their tables. Returns the names of those that failed."""
    wanted, grids, overtime, commit = [], {}, {}, options.commit or commit_of()
    for experiment in experiments.values():
        grids[experiment.name] = grid_of(experiment, options.quick, options.seeds)
        wanted += [(experiment, cell) for cell in cells_of(experiment, grids[experiment.name])]
        if experiment.series and options.write:
            overtime[experiment.name] = series_cell(experiment)
            wanted.append((experiment, overtime[experiment.name]))
    results, failed = run_all(wanted, store, options.jobs), []
    for experiment in experiments.values():
        outcome = Outcome(experiment, grids[experiment.name], results)
        drawn = overtime.get(experiment.name)
        if drawn and not isinstance(results[experiment.name, drawn], dict):
            outcome.failures.append((drawn, str(results[experiment.name, drawn])))
        for cell, why in outcome.failures:
            print(f"{experiment.name}: {' '.join(cell.words)}: {why}", file=sys.stderr)
        if outcome.failures:
            failed.append(experiment.name)
            continue
        print(f"# {experiment.name}: {experiment.title}\n\n{pages.block(outcome, options.quick)}", flush=True)
        try:
            if options.write:
                _write(outcome, options.quick, store, results, commit)
        except Mistake as mistake:
            print(f"{experiment.name}: {mistake}", file=sys.stderr)
            failed.append(experiment.name)
    return failed


def _recorded(experiments, write):
    """Prints the tables of the runs that are recorded, and writes them where that is wanted. Returns the names of the
    experiments of which that was not possible."""
    record, failed = Record(), []
    for name, experiment in experiments.items():
        try:
            outcome = judge.of_what_is_kept(experiment, record)
            if outcome.failures:
                cell, why = outcome.failures[0]
                raise Mistake(f"{' '.join(cell.words)}: {why}")
            print(f"# {name}: {experiment.title}\n\n{pages.block(outcome)}", flush=True)
            if write:
                _write_table(outcome)
        except Mistake as mistake:
            print(f"{name}: {mistake}", file=sys.stderr)
            failed.append(name)
    return failed


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
    if verb not in VERBS:
        unknown = [name for name in options.wanted if name not in experiments]
        if unknown:
            raise Mistake(f"{FOLDER}: no experiment {', '.join(unknown)}; sim/run list names them")
        experiments = {name: experiments[name] for name in options.wanted}
    if "BRAID_BIN" not in os.environ and not options.recorded:
        build(ROOT, sorted({cell.words[0] for experiment in experiments.values()
                            for cell in cells_of(experiment, experiment.quick)}))
    if verb in JUDGING:
        known = judge.outcomes(experiments, Record() if options.recorded else store, options.quick)
        print(json.dumps(_told(verb, experiments, known, options), indent=1, ensure_ascii=False))
        return 0
    failed = _recorded(experiments, options.write) if options.recorded else _run(experiments, options, store)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Mistake as mistake:
        sys.exit(f"sim/run: {mistake}")
    except KeyboardInterrupt:
        sys.exit("sim/run: broken off; what has run is kept")
