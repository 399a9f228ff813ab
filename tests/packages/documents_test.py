"""Documents say what is there: their YAML passes `braidd --check`; commands, settings, targets, links, names exist."""

import base64
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import targets
from known import commands, is_built, options, sections
from lab.gateway import binary

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("evaluation/**/*.md")])
# The file into which a partial YAML block is put: the block's sections replace those of the same name here.
FRAME = """
identity: {key: gateway.key, certificate: gateway.crt}
device: {addresses: [10.99.0.2/24], routes: [10.1.0.0/16]}
uplinks: [{interface: wan0}]
listen: ["0.0.0.0:4433"]
peers:
  - {name: hub, pin: "sha256:...", endpoints: [192.0.2.1:4433], prefixes: [10.99.0.1/32, 10.1.0.0/16]}
  - {name: shop, pin: "sha256:...", prefixes: [10.99.0.3/32, 192.168.10.0/24]}
"""
_QUOTED = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_TARGET = re.compile(r"scripts/target ([a-z]+\.\w+)")


def text_of(document):
    return document.read_text(encoding="utf-8")


def files_and_folders():
    """All files of the project, without build results, because other tests may build at the same time."""
    found = []
    for folder, names, files in os.walk(ROOT):
        names[:] = [name for name in names if name != "build" and not (name.startswith(".") and name != ".ci")]
        found += [pathlib.Path(folder, name).relative_to(ROOT) for name in names + files]
    return found


def name_of(document):
    return str(document.relative_to(ROOT))


def yaml_blocks():
    """(document and number, text) of each block that is marked as YAML."""
    for document in DOCUMENTS:
        blocks = [text for language, text in _FENCE.findall(text_of(document)) if language == "yaml"]
        for number, text in enumerate(blocks, 1):
            yield f"{name_of(document)}, block {number}", text


def parts_of(text):
    """{key at the top: its lines}"""
    parts = [part for part in re.split(r"^(?=[a-z])", text, flags=re.MULTILINE) if re.match("[a-z]", part)]
    return {part.partition(":")[0]: part for part in parts}


def whole(text):
    """A file of its own: a block that has no identity is put into the frame. Each "sha256:..." becomes another pin."""
    parts = parts_of(text)
    if "identity" not in parts:
        parts = parts_of(FRAME) | parts
    digests = (hashlib.sha256(str(number).encode()).digest() for number in itertools.count())
    return re.sub(r"sha256:\.\.\.", lambda _: "sha256:" + base64.b64encode(next(digests)).decode(),
                  "\n".join(parts.values()))


def spoken(program):
    """(document, the words of a command line) of each command of that program, in backquotes or on a line of code."""
    for document in DOCUMENTS:
        text = text_of(document)
        code = [line for _, block in _FENCE.findall(text) for line in block.splitlines()]
        code += re.findall(r"^(?: {4}|\t)(.*)$", text, re.MULTILINE)
        for line in _QUOTED.findall(text) + [line.partition(" #")[0] for line in code]:
            for piece in re.split(r"[|;&]+", line):
                found = re.search(rf"(?:^|\s){program} (\S.*)", piece)
                if found:
                    yield name_of(document), found.group(1).split()


def anchors(document):
    """The headings of a document as GitHub links to them."""
    headings = re.findall(r"^#+ (.*)$", text_of(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Yaml(unittest.TestCase):
    def test_every_block_passes_the_check(self):
        with tempfile.TemporaryDirectory() as folder:
            checked = 0
            for where, block in yaml_blocks():
                with self.subTest(where):
                    text, file = whole(block), pathlib.Path(folder) / "gateway.yaml"
                    for name in re.findall(r"key: (\w+)\.key", text):
                        if not (file.parent / f"{name}.key").exists():
                            subprocess.run([binary("braidctl"), "keygen", name, "--dir", folder],
                                           stdout=subprocess.DEVNULL, check=True)
                    file.write_text(text, encoding="utf-8")
                    done = subprocess.run([binary("braidd"), "--check", "--config", file], stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True, check=False)
                    self.assertEqual(done.returncode, 0, f"{done.stdout}\n{text}")
                    checked += 1
            self.assertGreater(checked, 10)

    def test_a_mistake_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "gateway.yaml"
            file.write_text(whole("tunnel: {sheduler: earliest}\n"), encoding="utf-8")
            done = subprocess.run([binary("braidd"), "--check", "--config", file], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("sheduler", done.stdout)


class Commands(unittest.TestCase):
    def test_verbs_and_options_of_braidctl(self):
        known, checked = commands("braidctl"), 0
        for where, words in spoken("braidctl"):
            named = [word for word in words if re.fullmatch(r"--[a-z][a-z-]*", word)]
            verb = next((words[:count] for count in (2, 1) if tuple(words[:count]) in known), None)
            with self.subTest(f"{where}: braidctl {' '.join(words)}"):
                checked += 1
                if words[0].startswith("-"):
                    self.assertLessEqual(set(named), options("braidctl"))
                    continue
                self.assertIsNotNone(verb, "no such command")
                self.assertLessEqual(set(named), options("braidctl", *verb))
        self.assertGreater(checked, 40)

    def test_options_of_braidd(self):
        known, checked = options("braidd"), 0
        for where, words in spoken("braidd"):
            named = {word for word in words if re.fullmatch(r"--[a-z][a-z-]*", word)}
            with self.subTest(f"{where}: braidd {' '.join(words)}"):
                checked += len(named)
                self.assertLessEqual(named, known)
        self.assertGreater(checked, 2)

    @unittest.skipUnless(is_built("braid-web"), "this build has no braid-web")
    def test_options_of_braid_web(self):
        """In its section, those of the unit's OPTIONS and those between backquotes."""
        section = text_of(ROOT / "docs/operations.md").partition("\n## braid-web\n")[2].partition("\n## ")[0]
        code = re.findall(r'"OPTIONS=([^"]*)"', section) + [
            quoted for quoted in _QUOTED.findall(section) if quoted.startswith("-") or quoted.startswith("braid-web")]
        named = {word for line in code for word in re.findall(r"--[a-z][a-z-]*", line)}
        self.assertGreater(len(named), 4)
        self.assertLessEqual(named, options("braid-web"))

    def test_targets(self):
        known, named = set(targets.load()), set()
        for document in DOCUMENTS:
            for name in _TARGET.findall(text_of(document)):
                named.add(name)
                with self.subTest(f"{name_of(document)}: {name}"):
                    self.assertTrue(name in known or name.endswith((".N", ".ID")))
        self.assertGreater(len(named), 10)


class Settings(unittest.TestCase):
    """`section.key`, and `key: value` in the documents that tell how to run a gateway."""

    def test_exist(self):
        with tempfile.TemporaryDirectory() as folder:
            known = sections(pathlib.Path(folder))
        paths = {f"{path}.{key}".lstrip(".") for path, keys in known.items() for key in keys}
        keys, checked = {key for each in known.values() for key in each}, 0
        for name in ("README.md", "docs/guide.md", "docs/operations.md", "docs/figures.md", "docs/security.md"):
            for quoted in _QUOTED.findall(text_of(ROOT / name)):
                dotted = re.fullmatch(r"([a-z]+(?:-[a-z]+)*)((?:\.[a-z]+(?:-[a-z]+)*)+)(?:: .*)?", quoted)
                single = re.fullmatch(r"([a-z]+(?:-[a-z]+)*): \S.*", quoted)
                with self.subTest(f"{name}: {quoted}"):
                    if dotted and dotted.group(1) in known[""]:
                        checked += 1
                        self.assertIn(dotted.group(1) + dotted.group(2), paths)
                    elif single:
                        checked += 1
                        self.assertIn(single.group(1), keys)
        self.assertGreater(checked, 60)


class Contributing(unittest.TestCase):
    """The files and names that CONTRIBUTING.md mentions."""

    def test_files_and_names_are_there(self):
        code = "\n".join(path.read_text(encoding="utf-8") for folder in ("src", "evaluation", "tools", "tests")
                         for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cc", ".py"))
        known, checked, here = set(re.findall(r"\w+", code)), 0, files_and_folders()
        for quoted in _QUOTED.findall(text_of(ROOT / "CONTRIBUTING.md")):
            path = re.fullmatch(r"[\w./-]*\w(?:/[\w.-]+|\.(?:h|cc|py|md|txt)|\.\*)", quoted)
            name = re.fullmatch(r"(?:(\w+)::)?(k?[A-Za-z]\w*)(?:\(\))?", quoted)
            with self.subTest(quoted):
                if path and "NAME" not in quoted:
                    checked += 1
                    self.assertTrue(any(each.match(quoted) for each in here))
                elif name and re.search(r"[A-Z(]", quoted) and "NAME" not in quoted:
                    checked += 1
                    self.assertLessEqual({each for each in name.groups() if each}, known)
        self.assertGreater(checked, 50)


class Instructions(unittest.TestCase):
    """The table of docs/performance.md, and what is reckoned from it, are of the value that speed.7 has recorded."""

    def test_of_a_packet(self):
        text = text_of(ROOT / "docs" / "performance.md")
        heading, rows = "| stages | instructions | of which |\n", {}
        for line in text.partition(heading)[2].partition("\n\n")[0].splitlines()[1:]:
            stage, instructions, _ = (cell.strip() for cell in line.strip("|").split("|"))
            rows[stage] = int(instructions.replace(",", ""))
        total = rows.pop("all")
        self.assertEqual(sum(rows.values()), total)
        records = json.loads(text_of(ROOT / "bench" / "instructions.json"))
        recorded = records["linked-and-optimised"]["instructions"]  # as installed
        self.assertLessEqual(abs(total / recorded - 1), 0.03, f"{recorded} are recorded")
        cipher = re.search(r"^\| all \| [\d,]+ \| cipher ([\d,]+) \|$", text, re.MULTILINE).group(1)
        self.assertIn(f"(above: {total:,} less {cipher} for the cipher", text)


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        checked = 0
        for document in DOCUMENTS:
            for link in _LINK.findall(text_of(document)):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                there = (document.parent / path) if path else document
                with self.subTest(f"{name_of(document)}: {link}"):
                    checked += 1
                    self.assertTrue(there.exists(), "no such file")
                    if anchor:
                        self.assertIn(anchor, anchors(there))
        self.assertGreater(checked, 20)


if __name__ == "__main__":
    unittest.main()
