"""Runs are stored, are run again when their program has changed, and are never omitted when they fail."""

import contextlib
import importlib.util
import io
import json
import unittest
from types import SimpleNamespace

from example import PROGRAM, TEXT, Case
from runner import __main__ as program
from runner.document import Mistake
from runner.grid import cells_of, grid_of, series_cell
from runner.judge import outcomes
from runner.outcome import Outcome
from runner.runs import Failure, Store, run_all, run_cell
from runner.samples import Sample
from grid_test import OVER_TIME


class RunnerCase(Case):
    def setUp(self):
        super().setUp()
        self.program()
        self.experiment = self.load()
        self.grid = grid_of(self.experiment, quick=True)
        self.store = Store(self.folder / "results")

    def run_it(self):
        """{cell: figures or Failure} of the reduced grid, with a store that has not yet seen the program."""
        self.store = Store(self.store.folder)
        wanted = [(self.experiment, cell) for cell in cells_of(self.experiment, self.grid)]
        with contextlib.redirect_stderr(io.StringIO()) as self.said:
            return run_all(wanted, self.store, 2)

    def runs(self):
        return len((self.folder / "runs").read_text(encoding="utf-8").splitlines())


class Kept(RunnerCase):
    def test_nothing_runs_twice(self):
        first = self.run_it()
        self.assertEqual(self.runs(), 8)
        self.assertIn("8 of 8 runs", self.said.getvalue())
        self.assertEqual(self.run_it(), first)
        self.assertEqual(self.runs(), 8)

    def test_what_was_broken_off_goes_on(self):
        self.run_it()
        removed = sorted(self.store.folder.glob("*.json"))[:3]
        removed[0].unlink()
        removed[1].write_text('{"result', encoding="utf-8")  # half a file
        self.run_it()
        self.assertEqual(self.runs(), 10)

    def test_another_program_runs_again(self):
        self.run_it()
        self.program(PROGRAM + "# changed\n")
        self.run_it()
        self.assertEqual(self.runs(), 16)

    def test_the_key_is_of_words_and_program(self):
        first, second = list(cells_of(self.experiment, self.grid))[:2]
        self.assertNotEqual(self.store.key(first), self.store.key(second))
        self.assertEqual(self.store.key(first), Store(self.folder).key(first))
        before = self.store.key(first)
        self.program(PROGRAM + "#\n")
        self.assertNotEqual(before, Store(self.folder).key(first))

    def test_the_key_is_of_the_data_that_programs_read(self):
        cell, data = next(cells_of(self.experiment, self.grid)), self.folder / "data"
        data.mkdir()
        sizes = data / "sizes.txt"
        sizes.write_text("100 1\n", encoding="utf-8")
        before = Store(self.folder, data).key(cell)
        self.assertEqual(Store(self.folder, data).key(cell), before)
        sizes.write_text("200 1\n", encoding="utf-8")
        self.assertNotEqual(Store(self.folder, data).key(cell), before)

    def test_what_was_not_run_is_not_judged(self):
        experiments = {"two-ways": self.experiment}
        self.run_it()
        self.assertEqual(list(outcomes(experiments, self.store, quick=True)), ["two-ways"])
        self.assertEqual(outcomes(experiments, self.store), {})

    def judged(self):
        """{name: how many seeds}."""
        found = outcomes({"two-ways": self.experiment}, self.store)
        return {name: outcome.grid.seeds for name, outcome in found.items()}

    def test_one_seed_of_a_grid_that_was_broken_off_is_not_judged(self):
        self.grid = grid_of(self.experiment, seeds=1)
        self.run_it()
        self.assertEqual(self.judged(), {})

    def test_a_grid_that_was_broken_off_is_judged_up_to_the_first_seed_that_lacks_a_run(self):
        self.grid = grid_of(self.experiment)
        self.run_it()
        self.assertEqual(self.judged(), {"two-ways": 5})
        hole = next(cell for cell in cells_of(self.experiment, self.grid) if cell.seed == 3)
        (self.store.folder / f"{self.store.key(hole)}.json").unlink()
        self.assertEqual(self.judged(), {"two-ways": 2})

    def test_an_experiment_of_which_a_run_failed_is_not_judged_until_it_succeeds(self):
        self.program('#!/bin/bash\ncase "$*" in *"--seed 3") exit 1 ;; esac\n' + PROGRAM.removeprefix("#!/bin/bash\n"))
        self.grid = grid_of(self.experiment)
        self.run_it()
        self.assertEqual(self.judged(), {})
        for cell in cells_of(self.experiment, self.grid):
            if cell.seed == 3:
                self.assertTrue(self.store.has_failed(cell))
                self.store.save(cell, {"p99": 1e-3, "late": [1, 2], "queue": {"max": 3}}, 1)
        self.assertEqual(self.judged(), {"two-ways": 5})

    def test_a_series_is_kept_beside_its_figures(self):
        self.program('#!/bin/bash\nwhile [[ $1 != --series ]]; do shift; done\necho "{}" >"$2"\necho "{}"\n')
        self.experiment = self.load(TEXT + OVER_TIME)
        cell, store = series_cell(self.experiment), Store(self.folder / "results")
        with contextlib.redirect_stderr(io.StringIO()):
            run_all([(self.experiment, cell)], store, 1)
        self.assertEqual(store.series(cell).read_text(encoding="utf-8"), "{}\n")
        self.assertIsNotNone(store.load(cell))
        store.series(cell).unlink()
        self.assertIsNone(store.load(cell))

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib (scripts/deps experiments)")
    def test_what_is_drawn_over_time_is_one_run(self):
        sample = {"t": 0.1, "window": 3000, "rate": None, "delivery": 1e6, "rtt": 0.02, "queue": 1500}
        lines = "".join(json.dumps({**sample, "subflow": path}) + "\n" for path in ("path0", "path1"))
        self.program(f"#!/bin/bash\nwhile [[ $1 != --series ]]; do shift; done\ncat >\"$2\" <<'E'\n{lines}E\n"
                     "echo run >>$(dirname \"$0\")/runs\necho '{}'\n")
        experiments = {"two-ways": self.load(TEXT + OVER_TIME), "other": self.experiment}
        options = SimpleNamespace(jobs=1, results=self.folder)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(program._series(experiments, options, Store(self.folder / "results")), [])
        path = self.folder / "plots" / "two-ways-time.svg"
        self.assertEqual((self.runs(), said.getvalue().splitlines()[-1]), (1, f"drawn: {path}"))
        self.assertIn("fuso: the first round", path.read_text(encoding="utf-8"))
        with self.assertRaisesRegex(Mistake, "none of other has a series"):
            program._series({"other": self.experiment}, options, self.store)


class Failing(RunnerCase):
    def fails(self, text, reason, limit=60):
        self.program(text)
        cell = next(cells_of(self.experiment, self.grid))
        with self.assertRaisesRegex(Failure, reason):
            run_cell(cell, limit)

    def test_exit_status(self):
        self.fails("#!/bin/bash\necho no route >&2\nexit 3\n", "exit status 3: no route")
        self.fails('#!/bin/bash\necho "{}"\nexit 1\n', "exit status 1: nothing on stderr")

    def test_signal(self):
        self.fails("#!/bin/bash\nkill -SEGV $$\n", "ended by signal 11")

    def test_no_json(self):
        self.fails("#!/bin/bash\necho words\n", "printed no JSON: words")
        self.fails("#!/bin/bash\n", "printed no JSON: nothing at all")
        self.fails("#!/bin/bash\necho 7\n", "no JSON object but 7")

    def test_too_long(self):
        self.fails("#!/bin/bash\nwhile :; do :; done\n", "more than 1 s of a core", limit=1)

    def test_one_failed_run_fails_the_experiment_and_is_not_kept(self):
        broken = PROGRAM.replace("[[ $policy", "[[ $policy == fuso && $seed == 2 ]] && exit 4\n[[ $policy", 1)
        self.program(broken)
        results = self.run_it()
        failed = [cell for (_, cell), result in results.items() if isinstance(result, Failure)]
        self.assertEqual({(cell.variant, cell.seed) for cell in failed}, {("fuso", 2)})
        outcome = Outcome(self.experiment, self.grid, results)
        self.assertCountEqual([cell for cell, _ in outcome.failures], failed)
        self.assertIn("exit status 4", outcome.failures[0][1])
        with self.assertRaisesRegex(ValueError, "two-ways failed"):
            outcome.verdict(self.experiment.claims[0])
        self.assertTrue(all(self.store.load(cell) is None for cell in failed))

    def test_a_figure_that_is_not_there(self):
        self.program(PROGRAM.replace("p99", "p98"))
        outcome = Outcome(self.experiment, self.grid, self.run_it())
        self.assertIn("no p99 among", outcome.failures[0][1])

    def test_a_run_that_is_missing(self):
        results = self.run_it()
        results.pop(next(iter(results)))
        self.assertEqual(Outcome(self.experiment, self.grid, results).failures[0][1], "was not run")


class Reported(RunnerCase):
    def test_of_each_run(self):
        outcome = Outcome(self.experiment, self.grid, self.run_it())
        self.assertEqual(outcome.failures, [])
        self.assertEqual(outcome.report("p99", "fuso").points["0.10", "edge"].values, Sample([1.1, 2.1]).values)
        self.assertEqual(outcome.report("late", "none").points["0.10", "inside"].values, (5, 5))

    def test_claims(self):
        outcome = Outcome(self.experiment, self.grid, self.run_it())
        tail, gain = (outcome.verdict(claim) for claim in self.experiment.claims)
        self.assertTrue(tail.met)
        self.assertAlmostEqual(tail.sample.mean, 1.6)
        self.assertAlmostEqual(tail.ratio, 1.6 / 2.4)
        self.assertFalse(gain.met)
        self.assertAlmostEqual(gain.sample.values[1], 1 - 2.1 / 4.1)
        self.assertIsNone(gain.ratio)

    def test_at_some_of_the_points(self):
        self.experiment = self.load(TEXT.replace("max(p99(fuso))", "p99(fuso), at: {loss: 0.10, where: edge}"))
        verdict = Outcome(self.experiment, self.grid, self.run_it()).verdict(self.experiment.claims[0])
        self.assertEqual(verdict.sample.values, (1.1, 2.1))

    def test_points_that_the_reduced_grid_has_not(self):
        for value in ("max(p99(fuso)), at: {loss: 0.01}", "'max(p99(fuso, loss=0.01))'"):
            self.experiment = self.load(TEXT.replace("max(p99(fuso))", value))
            verdict = Outcome(self.experiment, self.grid, self.run_it()).verdict(self.experiment.claims[0])
            self.assertIsNone(verdict.sample)
            self.assertFalse(verdict.met)

    def test_a_claim_must_choose(self):
        for value in ("p99(fuso)", "2"):
            self.experiment = self.load(TEXT.replace("max(p99(fuso))", value))
            with self.assertRaisesRegex(ValueError, "tail: the value is not one of a report"):
                Outcome(self.experiment, self.grid, self.run_it()).verdict(self.experiment.claims[0])

    def test_what_is_kept_tells_its_command(self):
        self.run_it()
        commands = {json.loads(path.read_text(encoding="utf-8"))["command"]
                    for path in self.store.folder.glob("*.json")}
        self.assertIn("program --policy fuso --loss 0.10 --edge --flows 10 --seed 2", commands)


if __name__ == "__main__":
    unittest.main()
