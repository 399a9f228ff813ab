"""The guard of `device.when-down: block` in booted machines: from power-up on, by the units that the package installs,
beside each program that configures the network."""

import unittest

from booted_case import GuardedCase


class BootCase(GuardedCase):
    def state(self, unit):
        return self.machine.property("ActiveState", unit), self.machine.property("Result", unit)

    def guards_from_power_up(self):
        """The way that packets take after `release` was there before."""
        self.assertEqual(self.boot_seen(), [0, 0])
        self.assertEqual(self.state("braid-guard@edge"), ("active", "success"))
        self.reaches()
        self.assertEqual(self.seen_at("systemctl", "stop", "braid@edge"), [0, 0])
        self.machine.run("braidctl", "release", "edge")
        self.eventually(lambda: min(self.seen()) > 0, "both families leave in clear")


class Networkd(BootCase):
    def setUp(self):
        super().setUp()
        self.networkd()

    def test_nothing_leaves_in_clear(self):
        self.machine.disable("braid@edge")
        self.boot_seen(self.lab.client)
        self.eventually(lambda: min(self.seen()) > 0, "without a guard, the look-out sees it")
        self.machine.enable("braid@edge")
        self.assertEqual(self.boot_seen(), [0, 0])
        self.assertEqual(self.state("braid-guard@edge"), ("active", "success"))
        folders = self.machine.run("stat", "-c", "%U %a", "/run/braid-host", "/var/lib/braid-host")
        self.assertEqual(folders, "root 755\nroot 700\n")
        self.reaches()
        for name, command in (
                ("reload", "systemctl reload braid@edge"), ("restart", "systemctl restart braid@edge"),
                ("kill", "kill -9 $(systemctl show --value --property=MainPID braid@edge)"),
                ("the network's restart", "systemctl restart systemd-networkd")):
            with self.subTest(name):
                self.assertEqual(self.seen_at("sh", "-c", command), [0, 0])
                self.reaches()
        self.assertEqual(self.seen_at("systemctl", "stop", "braid@edge", "braid-guard@edge"), [0, 0])
        self.assertEqual(self.state("braid@edge"), ("inactive", "success"))
        self.assertEqual(self.seen_at("systemctl", "restart", "systemd-networkd"), [0, 0], "while no daemon runs")
        self.assertEqual(self.seen_at("systemctl", "start", "braid@edge"), [0, 0])
        self.reaches()
        self.assertEqual(self.machine.run("systemctl", "--failed", "--plain", "--no-legend"), "")
        self.assertEqual(self.seen(self.machine.power_off), [0, 0], "while the machine ends")

    def test_a_mistake_in_the_file_does_not_end_the_guard_of_the_next_boot(self):
        self.assertEqual(self.boot_seen(), [0, 0])
        self.machine.run("sh", "-c", "echo 'uplink: x' >>/etc/braid/edge.yaml")
        self.assertEqual(self.boot_seen(), [0, 0])
        self.assertEqual(self.state("braid-guard@edge"), ("active", "success"))
        self.assertNotEqual(self.state("braid@edge")[0], "active")
        self.assertIn("as the file said when it was good last", self.machine.told("-u", "braid-guard@edge"))

    def test_a_device_that_is_renamed_and_a_release_until_the_next_boot(self):
        self.assertEqual(self.boot_seen(), [0, 0])
        self.reaches()
        self.machine.run("sed", "-i", "s/braid0/braid1/", "/etc/braid/edge.yaml")
        self.assertEqual(self.seen_at("systemctl", "restart", "braid@edge"), [0, 0])
        self.reaches()
        self.assertNotIn("braid0", self.edge.run("nft", "list", "ruleset"))
        self.assertEqual(self.seen_at("systemctl", "stop", "braid@edge"), [0, 0])
        self.machine.run("braidctl", "release", "edge")
        self.assertGreater(min(self.seen()), 0)
        self.assertNotIn("braid", self.edge.run("nft", "list", "ruleset"))
        self.assertEqual(self.boot_seen(), [0, 0])


class Leased(BootCase):
    """Programs that get the uplinks' addresses by DHCP."""

    def setUp(self):
        super().setUp()
        self.serve_leases()

    def test_network_manager(self):
        self.network_manager()
        self.guards_from_power_up()

    def test_ifupdown_with_dhclient(self):
        self.ifupdown()
        self.guards_from_power_up()

    def test_ifupdown_with_dhcpcd(self):
        self.machine.remove("isc-dhcp-client")
        self.ifupdown()
        self.guards_from_power_up()


class Trixie(BootCase):
    SUITE = "trixie"

    def test_networkd(self):
        self.networkd()
        self.guards_from_power_up()


if __name__ == "__main__":
    unittest.main()
