"""The runs behind a page are kept beside it, and are judged without their programs."""

import gzip
import unittest

from example import PROGRAM
from experiments.document import Mistake
from experiments.grid import cells_of, grid_of
from experiments.judge import outcomes
from experiments.record import Record
from runner_test import RunnerCase


class Recorded(RunnerCase):
    def setUp(self):
        super().setUp()
        self.record = self.folder / "record"

    def save(self, name="two-ways"):
        results = {cell: result for (_, cell), result in self.run_it().items()}
        Record(self.record).save(name, results)
        return results

    def test_gives_back_what_was_run_by_its_words(self):
        results = self.save()
        self.program("#!/bin/bash\nexit 1\n")
        record = Record(self.record)
        self.assertEqual({cell: record.load(cell)["result"] for cell in results}, results)
        other = next(cells_of(self.experiment, grid_of(self.experiment)))
        self.assertIsNone(record.load(other), "the full grid was not run")

    def test_is_judged_as_a_store_is(self):
        self.grid = grid_of(self.experiment)
        self.save()
        self.program("#!/bin/bash\nexit 1\n")
        known = outcomes({"two-ways": self.experiment}, Record(self.record))
        self.assertEqual({name: outcome.grid.seeds for name, outcome in known.items()}, {"two-ways": 5})

    def test_the_same_figures_make_the_same_file(self):
        self.save()
        file = self.record / "two-ways.json.gz"
        before = file.read_bytes()
        self.save()
        self.assertEqual(file.read_bytes(), before)
        self.program(PROGRAM.replace("factor=2", "factor=3"))
        self.save()
        self.assertNotEqual(file.read_bytes(), before)

    def test_one_file_for_each_experiment_which_takes_the_place_of_its_last(self):
        few = grid_of(self.experiment, quick=True, seeds=1)
        self.save()
        self.grid = few
        self.save()
        self.save("others")
        self.assertEqual(sorted(file.name for file in self.record.iterdir()), ["others.json.gz", "two-ways.json.gz"])
        self.assertEqual(len(gzip.decompress((self.record / "two-ways.json.gz").read_bytes()).splitlines()), 1 + 4)

    def test_what_is_no_record_is_a_mistake_that_names_the_file(self):
        self.record.mkdir()
        for content in (b"text", gzip.compress(b"{}\n{}\n"), gzip.compress(b"{}\n[1]\n")):
            with self.subTest(content):
                (self.record / "broken.json.gz").write_bytes(content)
                with self.assertRaisesRegex(Mistake, "broken.json.gz: no record of runs"):
                    Record(self.record)


if __name__ == "__main__":
    unittest.main()
