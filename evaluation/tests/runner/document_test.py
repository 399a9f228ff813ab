"""Mistakes in an experiment's file are named with file, line, key and remedy."""

import unittest

from example import TEXT, Case
from runner.document import Mistake
from runner.spec import load_all, load_figures


class Mistakes(Case):
    def refuse(self, old, new, line, *words):
        """The text with `old` replaced by `new` is rejected at that line with this message."""
        self.assertIn(old, TEXT)
        with self.assertRaises(Mistake) as caught:
            self.load(TEXT.replace(old, new, 1))
        said = str(caught.exception)
        self.assertTrue(said.startswith(f"{self.folder}/two-ways.yaml:{line}: "), said)
        for word in words:
            self.assertIn(word, said)

    def test_unknown_key(self):
        self.refuse("settings:", "setings:", 4, "setings is not known", "did you mean settings?")

    def test_key_twice(self):
        self.refuse("seeds: 5", "seeds: 5\nseeds: 6", 10, "seeds is there twice")

    def test_missing_key(self):
        self.refuse("title: Two ways\n", "", 1, "title is missing", "add it to two-ways.yaml")

    def test_too_few_seeds(self):
        self.refuse("seeds: 5", "seeds: 4", 9, "seeds is 4", "at least 5")

    def test_no_number(self):
        self.refuse("seeds: 5", "seeds: five", 9, "seeds is not a number: five")

    def test_no_whole_number(self):
        self.refuse("seeds: 5", "seeds: 5.5", 9, "write a whole number")

    def test_axis_that_the_command_leaves_out(self):
        self.refuse(" {where}", "", 3, "command and the rest differ in where")

    def test_placeholder_of_nothing(self):
        self.refuse("{flows}", "{flow}", 3, "flow, flows")

    def test_ratio_to_no_variant(self):
        self.refuse("against: none", "against: mptcp", 15, "against names no variant: mptcp", "none, fuso")

    def test_formula_that_is_python(self):
        self.refuse("p99 * 1000", "p99.__class__", 15, "value has __class__")
        self.refuse("p99 * 1000", "'[p99][0]'", 15, "value has")
        self.refuse("p99 * 1000", "p99 *", 15, "value is no formula")

    def test_method_in_a_formula(self):
        self.refuse("p99 * 1000", "late.copy()", 15, "which no formula may have")

    def test_claim_of_nothing(self):
        self.refuse("max(p99(fuso))", "max(p98(fuso))", 18, "names what is not there: p98")

    def test_claim_at_no_point(self):
        self.refuse("value: max(p99(fuso))", "value: max(p99(fuso)), at: {loss: 0.2}", 18, "loss has 0.2")
        self.refuse("value: max(p99(fuso))", "value: max(p99(fuso)), at: {los: 0.1}", 18, "did you mean loss?")

    def test_relation(self):
        self.refuse("relation: at most", "relation: below", 18, "at most, at least, about")
        self.refuse("relation: at most", "relation: about", 18, "add `within`")

    def test_neither_yes_nor_no(self):
        self.refuse("relation: at most", "relation: at most, input: maybe", 18, "input is neither yes nor no")
        self.refuse("log: yes", "log: true", 16, "log is neither yes nor no")

    def test_words_without_a_limit(self):
        self.refuse("    limit: 0.823\n", "", 23, "paper is no number: up to 82 %", "limit")

    def test_quick_values_that_the_grid_has_not(self):
        self.refuse("loss: [0.10]", "loss: [0.2]", 12, "loss has 0.2, which the full grid has not")

    def test_quick_setting_that_is_none(self):
        self.refuse("settings: {flows: 10}", "settings: {bytes: 10}", 13, "bytes is no setting")

    def test_value_twice(self):
        self.refuse("[0.01, 0.10]", "[0.01, 0.01]", 6, "loss has a value twice")

    def test_names_that_formulas_confuse(self):
        self.refuse("loss: [0.01", "none: [0.01", 8, "has none")
        self.refuse("fuso: --policy fuso", "FUSO: --policy fuso", 8, "has FUSO")

    def test_no_yaml(self):
        self.refuse("settings: {flows: 100}", "settings: {flows: 100", 5, "not YAML")

    def test_empty_file(self):
        with self.assertRaisesRegex(Mistake, "two-ways.yaml:1: the file is empty"):
            self.load("")

    def test_claim_in_two_files(self):
        self.load(name="first")
        self.load(name="second")
        with self.assertRaisesRegex(Mistake, "claim tail is in both"):
            load_all(self.folder)


class Files(Case):
    def test_values_stay_as_they_are_written(self):
        experiment = self.load(TEXT.replace("none: --policy none", "off: --policy none").replace(
            "against: none", "against: off").replace("p99(none", "p99(off"))
        self.assertEqual(list(experiment.variants), ["off", "fuso"])
        self.assertEqual(list(experiment.full.axes["loss"]), ["0.01", "0.10"])

    def test_figures(self):
        file = self.folder / "figures.yaml"
        file.write_text("fuso: {6a: tails, abstract: much}\namp: {8: incast}\n", encoding="utf-8")
        self.assertEqual(load_figures(file), {("fuso", "6a"): "tails", ("fuso", "abstract"): "much",
                                              ("amp", "8"): "incast"})

    def test_a_folder_is_read_without_the_list_of_figures(self):
        (self.folder / "figures.yaml").write_text("fuso: {}\n", encoding="utf-8")
        self.load()
        self.assertEqual(list(load_all(self.folder)), ["two-ways"])


if __name__ == "__main__":
    unittest.main()
