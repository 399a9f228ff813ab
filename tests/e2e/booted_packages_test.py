"""The Debian package in a booted machine, installed, upgraded and removed by dpkg: what becomes of the guard.

Building the package as a release does takes long (scripts/target operate.2). This one has the programs of this build,
the units and the package's own scripts."""

import pathlib
import re
import shutil
import unittest

from booted_case import GuardedCase
from lab.boot import ROOT
from lab.gateway import binary
from lab.netns import run

CONTROL = """Package: braid
Version: {version}
Architecture: all
Maintainer: Braid developers <braid@packages.invalid>
Description: the build that is tested
"""
FIRST_STEP = re.compile(r"^    braidctl ([a-z]+)", re.MULTILINE)
# What debhelper (dh_installsysusers) writes.
SYSUSERS = 'if [ "$1" = configure ]; then systemd-sysusers braid.conf; fi'


def build(folder, version):
    """The path of a package."""
    content = folder / version
    for program in ("braidd", "braidctl"):
        place(pathlib.Path(binary(program)), content / "usr/bin" / program)
    for unit in ("braid@.service", "braid-guard@.service"):
        place(ROOT / "systemd" / unit, content / "usr/lib/systemd/system" / unit)
    place(ROOT / "systemd/braid.sysusers", content / "usr/lib/sysusers.d/braid.conf")
    for script in ("postinst", "prerm", "postrm"):
        text = (ROOT / "packaging/debian" / f"braid.{script}").read_text(encoding="utf-8")
        file = content / "DEBIAN" / script
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace("#DEBHELPER#", SYSUSERS if script == "postinst" else ""), encoding="utf-8")
        file.chmod(0o755)
    (content / "DEBIAN/control").write_text(CONTROL.format(version=version), encoding="utf-8")
    package = folder / f"braid_{version}.deb"
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", content, package)
    return package


def place(file, to):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, to)


class Packages(GuardedCase):
    def install(self):
        """The packages as files of the machine, and the older one in effect."""
        for version in ("1.0", "1.1"):
            shutil.copy(build(self.lab.directory, version), self.machine.tree / "root")
        self.first = run("chroot", self.machine.tree, "dpkg", "--install", "/root/braid_1.0.deb")
        self.machine.enable("braid@edge")

    def traces(self):
        """What of Braid is at the host: rules, packet filter, files of what runs."""
        found = [line for line in self.edge.run("nft", "list", "tables").splitlines() if "braid" in line]
        for family in ("-4", "-6"):
            usual = self.lab.server.ip(family, "rule").splitlines()
            found += [line for line in self.edge.ip(family, "rule").splitlines() if line not in usual]
        return found + self.machine.run("find", "/run", "/var/lib", "-name", "*braid*", "-not", "-path",
                                        "/var/lib/*/*").split()

    def test_an_upgrade_leaves_the_guard_and_a_removal_takes_it_away(self):
        self.networkd()
        self.assertEqual(self.boot_seen(), [0, 0])
        self.reaches()
        pid = self.machine.property("MainPID")
        self.assertEqual(self.seen_at("dpkg", "--install", "/root/braid_1.1.deb"), [0, 0])
        self.reaches()
        self.assertNotEqual(self.machine.property("MainPID"), pid, "the new one runs")
        said = self.machine.run("dpkg", "--install", "/root/braid_1.1.deb")
        self.assertIn("\nbraid@edge.service: no stream is open: a restart resets none\n", said)
        self.assertNotIn("braidctl setup", said, "which the first installation has said")
        self.assertEqual(FIRST_STEP.findall(self.first), ["setup", "invite", "join"])
        self.reaches()
        self.assertEqual(self.seen_at("systemctl", "stop", "braid@edge"), [0, 0])
        self.assertEqual(self.seen_at("dpkg", "--install", "/root/braid_1.1.deb"), [0, 0], "while none runs")
        self.machine.run("systemctl", "start", "braid@edge")
        self.reaches()
        self.machine.run("dpkg", "--remove", "braid")
        self.assertGreater(min(self.seen()), 0)
        self.assertEqual(self.traces(), ["/var/lib/braid"], "counts of metered uplinks")
        self.machine.run("dpkg", "--install", "/root/braid_1.1.deb")
        self.assertGreater(min(self.seen()), 0, "nothing is started")
        self.machine.run("systemctl", "start", "braid@edge")
        self.assertEqual(self.seen(), [0, 0], "guarded again")
        self.assertEqual(self.seen_at("systemctl", "stop", "braid@edge"), [0, 0])
        self.machine.run("dpkg", "--purge", "braid")
        self.assertGreater(min(self.seen()), 0)
        self.assertEqual(self.traces(), [])


if __name__ == "__main__":
    unittest.main()
