"""The runs behind docs/results.md are kept, and are judged without their programs."""

import contextlib
import gzip
import importlib.util
import io
import subprocess
import unittest
from types import SimpleNamespace
from unittest import mock

from example import PROGRAM, TEXT
from runner import __main__ as program
from runner.document import Mistake
from runner.grid import cells_of, grid_of
from runner.judge import recorded
from runner.record import Record, commit_of
from runs_test import RunnerCase


class Recorded(RunnerCase):
    def setUp(self):
        super().setUp()
        self.record = self.folder / "record"

    def save(self, name="two-ways", commit="abc"):
        results = {cell: result for (_, cell), result in self.run_it().items()}
        Record(self.record).save(name, results, commit)
        return results

    def judged(self):
        """{name: what is said of it}, by other programs than those that have run."""
        self.program("#!/bin/bash\nexit 1\n")
        return recorded({"two-ways": self.experiment}, Record(self.record))["two-ways"]

    def test_gives_back_what_was_run_by_its_words(self):
        results = self.save()
        runs = Record(self.record).of(self.experiment)
        self.assertEqual({cell: runs.load(cell)["result"] for cell in results}, results)
        other = next(cells_of(self.experiment, grid_of(self.experiment)))
        self.assertIsNone(runs.load(other), "the full grid was not run")

    def test_is_judged_as_a_store_is(self):
        self.grid = grid_of(self.experiment)
        self.save()
        self.assertEqual(self.judged(), {"commit": "abc", "seeds": 5, "of": 5, "unfinished": {}})
        self.grid = grid_of(self.experiment, seeds=3)
        self.program()
        self.save(commit="def")
        self.assertEqual(self.judged(), {"commit": "def", "seeds": 3, "of": 5, "unfinished": {}})

    def test_what_is_not_recorded_is_not_judged(self):
        self.assertEqual(self.judged(), {"commit": None, "seeds": 0, "of": 5, "unfinished": {}})
        self.grid = grid_of(self.experiment)
        self.program()
        self.save("others")
        self.assertEqual(self.judged()["seeds"], 0, "the same runs of another experiment are none of this one")

    def test_the_same_figures_leave_the_file_and_its_commit(self):
        self.save()
        file = self.record / "two-ways.json.gz"
        before = file.read_bytes()
        self.save(commit="def")
        self.assertEqual(file.read_bytes(), before)
        self.program(PROGRAM.replace("factor=2", "factor=3"))
        self.save(commit="def")
        self.assertNotEqual(file.read_bytes(), before)
        self.assertEqual(Record(self.record).commit("two-ways"), "def")

    def test_a_file_takes_the_place_of_its_last_and_no_other_stays(self):
        self.save()
        self.grid = grid_of(self.experiment, quick=True, seeds=1)
        self.save()
        self.save("others")
        self.assertEqual(sorted(file.name for file in self.record.iterdir()), ["others.json.gz", "two-ways.json.gz"])
        self.assertEqual(len(gzip.decompress((self.record / "two-ways.json.gz").read_bytes()).splitlines()), 1 + 4)

    def test_what_is_no_record_is_a_mistake_that_names_the_file_until_it_is_written_anew(self):
        self.record.mkdir()
        whole = gzip.compress(b'{"commit": "a"}\n' + b'{"command": "x", "result": {}}\n' * 99, mtime=0)
        damaged = whole[:20] + bytes(byte ^ 0x55 for byte in whole[20:40]) + whole[40:]
        lines = b"{}\n", b'{"commit": 1}\n[1]\n', b'{"commit": 1}\n{"command": "x"}\n'
        others = [gzip.compress(text) for text in lines]
        for content in (b"", b"text", whole[:-9], damaged, *others):
            with self.subTest(content):
                (self.record / "two-ways.json.gz").write_bytes(content)
                with self.assertRaisesRegex(Mistake, "two-ways.json.gz: no record of runs"):
                    Record(self.record).of(self.experiment)
        self.save()
        self.assertEqual(Record(self.record).commit("two-ways"), "abc")

    def told(self, plot=False):
        """(what was printed, what was complained of, the names of those that failed) by NAME --recorded."""
        with mock.patch.object(program, "Record", lambda: Record(self.record)), \
                contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as wrong:
            options = SimpleNamespace(plot=plot, results=self.folder)
            failed = program._recorded({"two-ways": self.experiment}, options)
        return out.getvalue(), wrong.getvalue(), failed

    def test_tables_are_drawn_of_what_is_recorded_and_nothing_runs(self):
        self.grid = grid_of(self.experiment)
        self.save()
        before = self.runs()
        self.experiment = self.load(TEXT.replace("what: late flows", "what: flows that are late"))
        text, wrong, failed = self.told()
        self.assertIn("flows that are late", text)
        self.assertIn("5 seeds", text)
        self.assertEqual((wrong, failed, self.runs()), ("", [], before))

    def test_why_there_is_no_table_is_said(self):
        self.assertIn("two-ways: 0 of 40 runs are there", self.told()[1])
        self.grid = grid_of(self.experiment)
        self.save()
        self.experiment = self.load(TEXT.replace("p99 * 1000", "p98 * 1000"))
        _, wrong, failed = self.told()
        self.assertRegex(wrong, "^two-ways: program .*: p99: .*p98")
        self.assertEqual(failed, ["two-ways"])

    def test_a_plot_that_cannot_be_drawn_stops_no_other(self):
        self.grid = grid_of(self.experiment)
        self.save()
        with mock.patch.object(program, "_plot", side_effect=Mistake("no data")):
            _, wrong, failed = self.told(plot=True)
        self.assertEqual((wrong, failed), ("two-ways: no data\n", ["two-ways"]))

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib (scripts/deps experiments)")
    def test_plots_are_drawn_of_what_is_recorded_and_nothing_runs(self):
        self.grid = grid_of(self.experiment)
        self.save()
        before = self.runs()
        _, wrong, failed = self.told(plot=True)
        path = self.folder / "plots" / "two-ways.svg"
        self.assertEqual((wrong, failed, self.runs()), (f"drawn: {path}\n", [], before))
        self.assertIn(self.experiment.title, path.read_text(encoding="utf-8"))

    def test_a_run_of_a_program_that_has_another_name_now_is_found(self):
        """Records keep the command lines of their time: `sim_rate incast` for `braid-sim rate incast`."""
        self.record.mkdir()
        lines = [b'{"commit": "abc"}'] + [b'{"command": "sim_%s", "result": {"p99": 1}}' % words for words in
                                          (b"rate incast --seed 1", b"tcp timeouts --control sim_rate")]
        (self.record / "two-ways.json.gz").write_bytes(gzip.compress(b"\n".join(lines), mtime=0))
        runs = Record(self.record).of(self.experiment)
        for words in ("braid-sim rate incast --seed 1", "braid-sim tcp timeouts --control sim_rate"):
            self.assertEqual(runs.load(SimpleNamespace(words=tuple(words.split()))), {"result": {"p99": 1}})
        self.assertIsNone(runs.load(SimpleNamespace(words=("braid-sim", "rate", "incast", "--seed", "2"))))

    def test_a_record_is_not_overwritten_by_chance(self):
        for words in (["fuso-8", "--recorded", "--commit", "abc"], ["claims", "--recorded", "--write"],
                      ["fuso-8", "--recorded", "--write"], ["fuso-8", "--write", "--quick"],
                      ["fuso-8", "--write", "--seeds", "2"], ["list", "--recorded"], ["results", "--recorded"]):
            with self.subTest(words), mock.patch("sys.argv", ["evaluation/run", *words]), \
                    contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                program._parse()

    def test_the_commit_is_that_of_a_checkout(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.folder, check=True,
                           stdout=subprocess.DEVNULL)
        self.assertEqual(commit_of(self.folder), "unknown")
        git("init", "--quiet")
        (self.folder / "a").write_text("1", encoding="utf-8")
        git("add", "a")
        git("commit", "--quiet", "-m", "a")
        self.assertRegex(commit_of(self.folder), "^[0-9a-f]{12}$")
        (self.folder / "a").write_text("2", encoding="utf-8")
        self.assertRegex(commit_of(self.folder), r"^[0-9a-f]{12}\+$")


if __name__ == "__main__":
    unittest.main()
