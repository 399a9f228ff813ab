"""What scripts/package tells: each stage with its time, when it begins and when it has ended."""

import io
import unittest

from packages.deb import stage_of
from packages.stages import Stages


class Told(unittest.TestCase):
    def setUp(self):
        self.now, self.out = 100.0, io.StringIO()

    def stages(self):
        return Stages("trixie arm64", self.out, lambda: self.now)

    def test_a_stage_is_named_when_it_begins(self):
        with self.stages() as stages:
            stages.begin("compile")
            self.assertEqual(self.out.getvalue(), "trixie arm64: compile ...")
            self.now += 61.6
            stages.begin("pack")
            self.now += 2
        self.assertEqual(self.out.getvalue(), "trixie arm64: compile ... 62 s\ntrixie arm64: pack ... 2 s\n")

    def test_one_that_fails_is_told_as_such(self):
        with self.assertRaises(RuntimeError), self.stages() as stages:
            stages.begin("compile")
            self.now += 3
            raise RuntimeError("no compiler")
        self.assertEqual(self.out.getvalue(), "trixie arm64: compile ... failed after 3 s\n")


class OfABuild(unittest.TestCase):
    def test_is_known_by_what_debhelper_says(self):
        for line, what in (
                ("dh_auto_configure -- -DCMAKE_BUILD_TYPE=Release -DBRAID_TESTS=none\n", "configure"),
                ("   dh_auto_build -O--buildsystem=cmake\\+ninja\n", "compile"),
                ("dh_auto_configure --builddirectory=build-tests -- -DBRAID_TESTS=fast\n", "unit tests"),
                ("   dh_auto_install --destdir=debian/tmp/ -O--buildsystem=cmake\\+ninja\n", "pack"),
                ("[1/9] Building CXX object src/dh_auto_build.cc.o\n", None),
                ("dh_auto_build --builddirectory=build-tests -- unit_tests\n", None)):
            self.assertEqual(stage_of(line), what, line)


if __name__ == "__main__":
    unittest.main()
