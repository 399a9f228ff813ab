"""The finder of phrases that readers stumble over: each rule finds its example, and plain sentences pass."""

import pathlib
import subprocess
import tempfile
import unittest

import plain

EXAMPLES = {
    "so many": "// waits for so long and no longer",
    "ours": "/// At most 16. Ours.",
    "of-start": "// Of those that are left the oldest",
    "pronoun-start": "/// It is sent again",
    "who-things": "// a peer who sends nothing",
    "whoever": "// whoever asks gets an answer",
    "in the place of": "// the copy stands in place of it",
    "for ever": "// kept for ever",
    "anew": "// read anew",
    "archaic": "// lest the queue grows",
    "for-because": "// dropped, for it is late",
    "is no": "// there is no room",
    "goes": "// the oldest goes first",
    "likewise": "// The same for the other side",
    "reckon": "// reckoned from the RTT",
    "metaphor": "// a seat for each stream",
    "but for": "// all but for the last",
}


class Plain(unittest.TestCase):
    """What is found, and where."""

    def test_each_rule_finds_its_example(self):
        self.assertEqual(set(EXAMPLES), {name for name, _, _ in plain.RULES})
        for name, line in EXAMPLES.items():
            with self.subTest(name):
                self.assertIn(name, [rule for rule, _, _ in plain.findings("a.cc", line)])

    def test_plain_sentences_pass(self):
        for line in ("// At most kMax packets wait. The oldest is dropped first.",
                     "/// Returns false when it is closed.",
                     "// so that the peer goes on sending", "# wireguard-go is faster", "# peer.go is built",
                     "// as long as the timer runs"):
            with self.subTest(line):
                self.assertEqual(plain.findings("a.h", line), [])

    def test_code_is_not_prose(self):
        self.assertEqual(plain.findings("a.cc", 'std::string goes = "anew";'), [])
        self.assertEqual([rule for rule, _, _ in plain.findings("a.md", "The oldest goes first.")], ["goes"])

    def test_lines_of_documents_have_a_bound(self):
        self.assertEqual(plain.findings("a.md", "x" * plain.WIDEST), [])
        self.assertEqual([rule for rule, _, _ in plain.findings("a.md", "x" * (plain.WIDEST + 1))], ["long line"])
        self.assertEqual(plain.findings("a.py", "x" * (plain.WIDEST + 1)), [])

    def test_of_a_change_only_what_was_added_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)

            def git(*words):
                subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=root, check=True,
                               stdout=subprocess.DEVNULL)

            git("-c", "init.defaultBranch=main", "init", "--quiet")
            (root / "a.cc").write_text("// read anew\n", encoding="utf-8")
            git("add", ".")
            git("commit", "-m", "one")
            (root / "a.cc").write_text("// read anew\nint a;\n// kept for ever\n", encoding="utf-8")
            self.assertEqual(list(plain.added_since("HEAD", root)),
                             [("a.cc", 2, "int a;"), ("a.cc", 3, "// kept for ever")])
            self.assertEqual(plain.count(plain.added_since("HEAD", root)), {"for ever": 1})
            self.assertEqual(plain.count(plain.lines_of(plain.tracked(root), root)), {"anew": 1, "for ever": 1})


if __name__ == "__main__":
    unittest.main()
