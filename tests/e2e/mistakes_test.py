"""The first message names cause and remedy of each typical mistake of tests/mistakes.yaml that takes some seconds to
make."""

import unittest

from targets import _mistakes


class Mistakes(unittest.TestCase):
    def test_the_first_message_names_cause_and_remedy(self):
        rows = [row for row in _mistakes.read(_mistakes.TABLE.read_text(encoding="utf-8")) if not row.get("slow")]
        self.assertGreaterEqual(len(rows), 30)
        self.assertEqual(_mistakes.judge_all(rows), {})


class Messages(unittest.TestCase):
    ROW = {"cause": "is wrong", "remedy": "correct it"}

    def test_cause_and_remedy_stand_in_one_message(self):
        self.assertTrue(_mistakes.names(self.ROW, "a step\nthis is wrong; correct it\n"))
        self.assertTrue(_mistakes.names(self.ROW, "this is wrong;\n  correct it\n"), "a message that is wrapped")
        self.assertFalse(_mistakes.names(self.ROW, "this is wrong\ncorrect it\n"), "two messages")
        self.assertFalse(_mistakes.names(self.ROW, "this is wrong\n"))

    def test_a_row_that_nothing_makes_is_refused(self):
        row = "{mistake: a, made: %s, cause: a, remedy: b}"
        self.assertEqual(len(_mistakes.read(f"mistakes: [{row % 'tab'}]")), 1)
        for wrong in (row % "nothing", f"{row % 'tab'}, {row % 'tab'}", "{mistake: a, made: tab, cause: a}"):
            with self.assertRaises(ValueError):
                _mistakes.read(f"mistakes: [{wrong}]")


if __name__ == "__main__":
    unittest.main()
