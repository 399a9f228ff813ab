"""Manual pages and completion match the programs: no option, command or key is missing or invented."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from known import commands, is_built, options, sections

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "docs/man"
COMPLETION = ROOT / "packaging/completion"
PAGES = ["braidd.8", "braidctl.8", "braid-web.8", "braid.yaml.5"]
needs_web = unittest.skipUnless(is_built("braid-web"), "this build has no braid-web")
_TERM = re.compile(r"^\.It (Fl|Cm) (.*)$", re.MULTILINE)


def page(name):
    return (MAN / name).read_text(encoding="utf-8")


def described_options(name):
    """The options that have an entry of their own: `.It Fl c , -config Ar FILE` is -c and --config."""
    found = set()
    for kind, rest in _TERM.findall(page(name)):
        if kind == "Fl":
            found |= {"-" + word for word in rest.partition(" Ar ")[0].split(" , ")}
    return found


def described_sections():
    """{path: keys} of braid.yaml(5)."""
    found = {}
    text = page("braid.yaml.5").partition(".Sh SECTIONS")[2].partition(".Sh FILES")[0]
    for part in text.split(".Ss ")[1:]:
        path, _, body = part.partition("\n")
        found["" if path == "Top" else path] = [rest.partition(" Pq ")[0] for _, rest in _TERM.findall(body)]
    return found


def completed(program, *words):
    """The completions that bash offers for these words, of which the last one is incomplete."""
    script = f"""
      source {COMPLETION / program}
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      _{program.replace('-', '_')}
      printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-u", "-c", script, "bash", program, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=True)
    assert not done.stderr, done.stderr
    return {word for word in done.stdout.split("\n") if word}


class Pages(unittest.TestCase):
    def test_are_sound(self):
        for name in PAGES:
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", MAN / name], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            # A page of another package may not be installed here, nor its index be up to date.
            told = [line for line in done.stdout.splitlines() if "mandoc.db" not in line]
            self.assertEqual(told, [])

    def test_braidd_has_every_option(self):
        self.assertGreater(len(options("braidd")), 5)
        self.assertEqual(described_options("braidd.8"), options("braidd"))

    @needs_web
    def test_braid_web_has_every_option(self):
        self.assertGreater(len(options("braid-web")), 7)
        self.assertEqual(described_options("braid-web.8"), options("braid-web"))

    def test_braidctl_has_every_command(self):
        known = commands("braidctl")
        self.assertGreater(len(known), 10)
        described = {}
        for kind, rest in _TERM.findall(page("braidctl.8")):
            if kind == "Cm":
                words, _, argument = rest.replace(" Op Ar ", " Ar ").partition(" Ar ")
                described[tuple(words.split())] = [argument.split(".")[0]] if argument else []
        self.assertEqual(described, known)

    def test_every_command_of_braidctl_speaks_json(self):
        for words in commands("braidctl"):
            self.assertIn("--json", options("braidctl", *words), words)

    def test_braidctl_has_every_option(self):
        known = options("braidctl").union(*(options("braidctl", *words) for words in commands("braidctl")))
        self.assertEqual(described_options("braidctl.8"), known)


class Configuration(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.known = sections(pathlib.Path(folder))

    def test_the_reader_was_asked(self):
        self.assertGreater(len(self.known), 14)
        self.assertGreater(sum(len(keys) for keys in self.known.values()), 90)

    def test_has_every_key(self):
        self.assertEqual({path: sorted(keys) for path, keys in described_sections().items()},
                         {path: sorted(keys) for path, keys in self.known.items()})


class Completion(unittest.TestCase):
    def test_offers_every_option_of_braidd(self):
        self.assertEqual(completed("braidd", "-"), options("braidd"))

    @needs_web
    def test_offers_every_option_of_braid_web(self):
        self.assertEqual(completed("braid-web", "-"), options("braid-web"))

    def test_offers_every_command(self):
        known = commands("braidctl")
        self.assertEqual({word for word in completed("braidctl", "") if word[0] != "-"}, {words[0] for words in known})
        self.assertEqual({word for word in completed("braidctl", "trace", "") if word[0] != "-"},
                         {words[1] for words in known if words[0] == "trace"})

    def test_offers_every_option_of_a_command(self):
        for words in commands("braidctl"):
            with self.subTest(" ".join(words)):
                self.assertEqual(completed("braidctl", *words, "-"), options("braidctl", *words))

    def test_offers_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("edge.yaml", "edge.crt", "edge.key"):
                (pathlib.Path(folder) / name).touch()
            self.assertEqual(completed("braidctl", "check", f"{folder}/"), {f"{folder}/edge.yaml"})
            self.assertEqual(completed("braidctl", "pin", f"{folder}/"), {f"{folder}/edge.crt"})
            self.assertEqual(completed("braidd", "--config", f"{folder}/"), {f"{folder}/edge.yaml"})


if __name__ == "__main__":
    unittest.main()
