"""scripts/deps for packages: it installs what makes a Debian tree, and upgrades nothing of the host. apt is a stub."""

import os
import pathlib
import subprocess
import tempfile
import unittest

DEPS = pathlib.Path(__file__).resolve().parents[2] / "scripts/deps"
# What apt-get says of a plan, if it is not asked only for that it notes its words.
APT = """#!/bin/sh
case " $* " in
  *" -s "*) cat {folder}/plan ;;
  *) echo "$*" >>{folder}/done ;;
esac
"""
NEW = "Inst mmdebstrap (1.3.5 Debian:12 [all])\nConf mmdebstrap (1.3.5 Debian:12 [all])\n"


@unittest.skipUnless(os.geteuid() == 0, "scripts/deps installs as root only")
class Host(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program("apt-get", APT.format(folder=self.folder))
        self.program("dpkg-query", "#!/bin/sh\nexit 1\n")  # nothing is installed

    def program(self, name, text):
        (self.folder / name).write_text(text, encoding="ascii")
        (self.folder / name).chmod(0o755)

    def deps(self, what, plan):
        """(exit code, what it said, the words of apt-get install)"""
        (self.folder / "plan").write_text(plan, encoding="ascii")
        done = subprocess.run([DEPS, what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        log = self.folder / "done"
        return done.returncode, done.stdout, log.read_text(encoding="ascii").split() if log.exists() else []

    def test_only_what_makes_a_tree_is_installed(self):
        code, said, words = self.deps("package", NEW)
        self.assertEqual(code, 0, said)
        packages = {word for word in words if word[0] not in "-" and "::" not in word} - {"install"}
        self.assertEqual(packages, {"python3", "git", "ca-certificates", "mmdebstrap", "systemd-container"})

    def test_what_would_be_upgraded_or_removed_is_named_and_nothing_done(self):
        for line, name in (("Inst systemd [252.38-1] (252.39-1 Debian:12 [amd64])\n", "systemd"),
                           ("Remv sysvinit-core [3.06-4]\n", "sysvinit-core")):
            code, said, words = self.deps("package", NEW + line)
            self.assertEqual((code, words), (1, []), said)
            self.assertIn(f"upgrade or remove {name} for python3", said)


if __name__ == "__main__":
    unittest.main()
