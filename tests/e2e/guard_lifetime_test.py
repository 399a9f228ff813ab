"""The guard of `device.when-down: block` from its making to its end: by whom it is made and taken away, also when the
configuration has changed or has a mistake by then."""

import os
import pathlib
import re
import signal
import unittest

from guard_case import GuardCase
from lab.gateway import binary

NOBODY = 65534
ROOT = pathlib.Path(__file__).resolve().parents[2]
UNIT = ROOT / "systemd" / "braid-guard@.service"
OPERATIONS = ROOT / "docs" / "operations.md"


class Lifetime(GuardCase):
    def test_the_daemon_makes_the_guard_and_release_takes_it_away(self):
        self.up()
        with self.assertRaisesRegex(RuntimeError, "the gateway runs"):
            self.braidctl("release")
        self.gateway.stop()
        self.assertEqual(self.seen(), [0, 0])
        self.braidctl("release")
        self.assertEqual(self.host(), self.before)
        self.assertGreater(min(self.seen()), 50)

    def test_three_commands_of_the_documents_take_it_away(self):
        section = OPERATIONS.read_text(encoding="utf-8").split("## When the tunnel is down", 1)[1].split("\n## ", 1)[0]
        commands = [line.strip() for line in section.splitlines() if re.match(r" +(nft|ip) ", line)]
        self.assertEqual(len(commands), 3)
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0])
        for command in commands:
            self.edge.run("sh", "-c", command)
        self.assertGreater(min(self.seen()), 50)

    def test_release_takes_away_what_was_made_whatever_the_configuration_says_by_then(self):
        for change in ("echo '{' >$0", "rm $0", "sed -i s/braid0/braid1/ $0", "sed -i s/block/direct/ $0"):
            with self.subTest(change):
                self.braidctl("guard", "apply")
                self.assertEqual(self.seen(), [0, 0])
                self.edge.run("sh", "-c", change, self.gateway.path)
                self.edge.run(binary("braidctl"), "release", self.gateway.path)
                self.assertEqual(self.host(), self.before)

    def kept(self):
        """The configuration as it was good last."""
        return pathlib.Path("/var/lib/braid-host") / (str(self.gateway.path.with_suffix(""))[1:].replace(
            "-", "--").replace("/", "-") + ".yaml")

    def test_a_mistake_while_the_gateway_runs_is_not_kept_for_the_next_boot(self):
        self.up()
        self.braidctl("guard", "apply")
        good = self.kept().read_text()
        self.edge.run("sh", "-c", "echo 'uplink: x' >>$0", self.gateway.path)
        self.assertIn("keeps its guard", self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path))
        self.assertEqual(self.kept().read_text(), good)

    def test_a_mistake_in_the_file_does_not_end_the_guard_of_the_next_boot(self):
        kept = self.kept()
        self.braidctl("guard", "apply")
        self.assertEqual((kept.stat().st_mode & 0o777, kept.read_text()), (0o600, self.gateway.path.read_text()))
        self.edge.run("nft", "flush", "ruleset")
        for family in ("-4", "-6"):
            self.edge.ip(family, "rule", "del", "priority", 6700)
        self.edge.run("sh", "-c", "echo 'uplink: x' >>$0", self.gateway.path)
        told = self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)
        self.assertIn("as the file said when it was good last", told)
        self.assertIn(f"{self.gateway.path}:", told)
        self.assertEqual(self.seen(), [0, 0])
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertFalse(kept.exists())
        self.assertEqual(self.host(), self.before)
        with self.assertRaisesRegex(RuntimeError, re.escape(f"{self.gateway.path}:")):
            self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)

    def test_a_device_that_is_renamed_takes_its_guard_along(self):
        self.braidctl("guard", "apply")
        self.edge.run("sed", "-i", "s/braid0/braid1/", self.gateway.path)
        self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)
        self.assertNotIn("braid0", self.edge.run("nft", "list", "ruleset"))
        self.assertEqual(self.seen(), [0, 0])
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertEqual(self.host(), self.before)

    def test_the_guard_of_the_old_name_is_found_after_an_apply_while_the_gateway_runs(self):
        self.up()
        self.braidctl("guard", "apply")
        self.edge.run("sed", "-i", "s/braid0/braid1/", self.gateway.path)
        self.assertIn("keeps its guard", self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path))
        self.gateway.stop()
        self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)  # the unit, before the daemon starts
        self.assertNotIn("braid0", self.edge.run("nft", "list", "ruleset"))
        self.assertEqual(self.seen(), [0, 0])
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertEqual(self.host(), self.before)

    def test_a_socket_with_a_space_in_its_path(self):
        control = self.gateway.config["control"]
        self.addCleanup(control.update, socket=control["socket"])
        control["socket"] = str(self.lab.directory / "the edge.sock")
        self.braidctl("guard", "apply")
        self.edge.run("sh", "-c", "echo '{' >$0", self.gateway.path)
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertEqual(self.host(), self.before)

    def test_who_may_not_take_it_away_hears_of_it(self):
        """While the gateway runs as well, when the configuration does not want a guard any more."""
        def release():
            return self.edge.run("setpriv", "--inh-caps", "-all", "--bounding-set", "-all", "--no-new-privs",
                                 binary("braidctl"), "release", self.gateway.path)

        self.braidctl("guard", "apply")
        with self.assertRaisesRegex(RuntimeError, "use root"):
            release()
        self.up()
        self.edge.run("sed", "-i", "s/block/direct/", self.gateway.path)
        with self.assertRaisesRegex(RuntimeError, "use root"):
            release()
        self.gateway.stop()
        self.assertEqual(self.seen(), [0, 0])

    def test_the_removal_of_the_package_takes_it_away(self):
        self.braidctl("guard", "apply")
        self.call_prerm("upgrade", "1.0")
        self.assertEqual(self.seen(), [0, 0], "an upgrade leaves it")
        self.call_prerm("remove")
        self.assertEqual(self.host(), self.before)
        self.assertGreater(min(self.seen()), 50)

    def test_a_configuration_without_it_ends_it(self):
        for by_reload in (True, False):
            with self.subTest(by_reload=by_reload):
                self.gateway.config["device"]["when-down"] = "block"
                self.up()
                self.gateway.config["device"].pop("when-down")
                if by_reload:
                    self.gateway.reload()
                    self.eventually(lambda: "unreachable" not in self.edge.ip("route", "show", "table", "all"), "gone")
                    self.gateway.stop()
                else:
                    self.gateway.stop(signal.SIGKILL)
                    self.assertEqual(self.seen(), [0, 0])
                    self.up()
                    self.gateway.stop()
                self.assertEqual(self.host(), self.before)

    def test_the_unit_may_do_what_it_must(self):
        """With the unit's capabilities, where the folder of further peers is the daemon's, and while it runs."""
        folder = self.lab.directory / "peers.d"
        folder.mkdir(mode=0o750)
        self.addCleanup(folder.rmdir)
        os.chown(folder, NOBODY, NOBODY)
        self.addCleanup(self.gateway.config.pop, "peers-folder")
        self.gateway.config["peers-folder"] = str(folder)
        self.gateway.write_config()
        bounds = re.search("^CapabilityBoundingSet=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1]
        kept = ",".join("+" + name.removeprefix("CAP_").lower() for name in bounds.split())

        def apply():
            return self.edge.run("setpriv", "--inh-caps", "-all", "--bounding-set", "-all," + kept, "--no-new-privs",
                                 binary("braidctl"), "guard", "apply", self.gateway.path)

        self.assertIn("or not at all", apply())
        self.assertEqual(self.seen(), [0, 0])
        self.up()
        control = self.gateway.config["control"]["socket"]
        os.chown(control, NOBODY, NOBODY)
        self.assertIn("keeps its guard", apply())
        self.gateway.stop(signal.SIGKILL)
        self.addCleanup(os.unlink, control)
        self.edge.run("nft", "flush", "ruleset")
        self.assertIn("or not at all", apply(), "the socket of a killed daemon keeps no guard")
        self.assertEqual(self.seen(), [0, 0])


if __name__ == "__main__":
    unittest.main()
