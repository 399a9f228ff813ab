"""The source of packages: versions of commits, and the release from which the upgrade is tested."""

import pathlib
import tempfile
import unittest
from unittest import mock

from lab.netns import run
from packages import source
from packages.source import Source

IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.net")


class Before(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patched = mock.patch.object(source, "ROOT", self.root)
        patched.start()
        self.addCleanup(patched.stop)
        self.git("init", "-q")
        (self.root / "CMakeLists.txt").write_text("project(braid VERSION 0.1.0 LANGUAGES CXX)\n", encoding="ascii")

    def git(self, *words):
        return run("git", *IDENTITY, "-C", self.root, *words).strip()

    def commit(self, *packages, changes=1):
        """Makes `changes` commits with these packages. Returns the last one."""
        control = self.root / source.DEBIAN / "control"
        control.parent.mkdir(parents=True, exist_ok=True)
        control.write_text("Source: braid\n" + "".join(f"\nPackage: {name}\n" for name in packages), encoding="ascii")
        for _ in range(changes):
            self.git("add", ".")
            self.git("commit", "-q", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "HEAD")

    def test_is_the_newest_tag_with_packages(self):
        old = self.commit("braid")
        self.git("tag", "v0.1.0")
        self.commit("braid", "braid-web")
        self.assertEqual(Source.of().before(), Source.of(old))
        self.assertEqual(Source.of().before().version, "0.1.0")

    def test_is_an_earlier_commit_with_the_same_packages_where_no_tag_has_any(self):
        self.commit()
        self.git("tag", "v0.0.1")
        self.commit("braid")
        first = self.commit("braid", "braid-web")
        self.assertIsNone(Source.of().before(), "none was before the first one")
        self.commit("braid", "braid-web", changes=3)
        self.assertEqual(Source.of().before().commit, first)

    def test_is_not_further_back_than_it_must_be(self):
        self.commit("braid", changes=5)
        with mock.patch.object(source, "BACK", 3):
            self.assertEqual(Source.of().before().commit, self.git("rev-parse", "HEAD~3"))

    def test_has_a_lower_version_without_tags(self):
        self.commit("braid", changes=11)
        with mock.patch.object(source, "BACK", 2):
            old, new = Source.of().before(), Source.of()
        self.assertTrue(old.version.startswith("0.1.0~9.g"), old.version)
        self.assertTrue(new.version.startswith("0.1.0~11.g"), new.version)

    def filled_in(self, text, remote=None, **environment):
        """The control file of a package, whose placeholders are filled in."""
        self.commit("braid")
        control = self.root / source.DEBIAN / "control"
        maintained = "" if "Maintainer" in text else "Maintainer: @MAINTAINER@\n"
        control.write_text(f"Source: braid\n{maintained}{text}\nPackage: braid\n", encoding="utf-8")
        (control.parent / "copyright").write_text("Source: @HOMEPAGE@\n", encoding="utf-8")
        self.commit_as_is()
        if remote:
            self.git("config", "remote.origin.url", remote)
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(source.os.environ, environment):
            tree = Source.of().unpack(pathlib.Path(folder) / "made", "bookworm")
            return [(tree / "debian" / name).read_text(encoding="utf-8") for name in
                    ("control", "copyright", "changelog")]

    def commit_as_is(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "change")

    def test_the_maintainer_is_who_made_the_commit_or_who_builds(self):
        text = "Maintainer: @MAINTAINER@\nHomepage: @HOMEPAGE@\n"
        control, copied, changelog = self.filled_in(text, DEBEMAIL="")
        self.assertIn("\nMaintainer: test <test@example.net>\n", control)
        self.assertIn("\n -- test <test@example.net>  ", changelog)
        self.assertNotIn("Homepage", control, "it was not cloned from a page")
        self.assertNotIn("@", copied)
        control, _, changelog = self.filled_in(text, DEBEMAIL="a@b.example", DEBFULLNAME="Ann \u00c5")
        self.assertIn("\nMaintainer: Ann \u00c5 <a@b.example>\n", control)
        self.assertIn("\n -- Ann \u00c5 <a@b.example>  ", changelog)

    def test_the_homepage_is_that_of_the_repository_without_secrets(self):
        page = "https://git.example.net/braid/braid"
        for remote in (page, f"{page}.git", "https://user:secret@git.example.net/braid/braid.git",
                       "git@git.example.net:braid/braid.git", "ssh://git@git.example.net/braid/braid.git"):
            control, copied, _ = self.filled_in("Homepage: @HOMEPAGE@\n", remote)
            self.assertIn(f"\nHomepage: {page}\n", control, remote)
            self.assertIn(f"Source: {page}\n", copied)
        for remote in ("/srv/braid", "file:///srv/braid", "http://localhost/braid"):
            self.assertNotIn("Homepage", self.filled_in("Homepage: @HOMEPAGE@\n", remote)[0], remote)

    def test_is_none_in_a_shallow_clone(self):
        self.commit("braid", changes=3)
        with tempfile.TemporaryDirectory() as folder:
            run("git", "clone", "-q", "--depth=1", f"file://{self.root}", folder)
            with mock.patch.object(source, "ROOT", pathlib.Path(folder)):
                self.assertIsNone(Source.of().before())


if __name__ == "__main__":
    unittest.main()
