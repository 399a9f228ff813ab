"""Programs that have a host's interfaces, and take away or rename what Braid needs: NetworkManager, systemd-networkd
and udev, in booted machines."""

import contextlib
import re
import subprocess
import unittest

from booted_case import BootedCase, GuardedCase
from guard_test import ELSEWHERE
from lab.gateway import PORT
from lab.netns import run
from lab.site import PUBLIC
from pair_case import V4, V6

GONE, AGAIN = "was gone from the host, and is put back: ", "another program takes it away again and again"
ROUNDS = 4
# The names that udev gives to modems are those that are free, in the order in which it finds them.
RENAME = 'SUBSYSTEM=="net", ACTION=="add", KERNEL=="usb*", PROGRAM="/usr/local/sbin/next-name", NAME="%c"\n'
NEXT_NAME = "#!/bin/sh\nn=0\nwhile [ -e /sys/class/net/wwan$n ]; do n=$((n + 1)); done\necho wwan$n\n"


class Managers(GuardedCase):
    """What they take away is put back and reported. When they do it again and again, it is put back less often, and
    nothing leaves in clear."""

    def ways(self):
        found = [self.machine.run("ip", "route", "get", address) for address in ELSEWHERE]
        return [re.search(r" dev (\S+)", line)[1] for line in found]

    def journal_of_daemon(self):
        return self.machine.told("-u", "braid@edge", "-n", "400")

    @contextlib.contextmanager
    def deleted(self, family):
        """A list of the lines of `ip monitor` about rules, complete at the end."""
        lines = []
        monitor = self.edge.popen("ip", family, "monitor", "rule", stdout=subprocess.PIPE, text=True)
        try:
            yield lines
        finally:
            monitor.terminate()
            lines += monitor.communicate()[0].splitlines()

    def contend(self, *command):
        """Runs the command again and again, as soon as the tunnel has its packets back. Returns what was heard of rules
        meanwhile, for IPv4 and IPv6."""
        self.assertEqual(self.boot_seen(), [0, 0])
        self.reaches()
        self.assertNotIn(GONE, self.journal_of_daemon())
        before = dict(self.clear.seen)
        with self.deleted("-4") as ipv4, self.deleted("-6") as ipv6:
            for number in range(ROUNDS):
                self.machine.run(*command)
                self.eventually(lambda: self.journal_of_daemon().count(GONE) > number, f"it is told, {number}", 20)
                self.eventually(lambda: self.ways() == ["braid0", "braid0"], "it is put back", 20)
        self.assertIn(AGAIN, self.journal_of_daemon())
        self.reaches()
        self.assertEqual(self.clear.seen, before, "in clear")
        return ipv4, ipv6

    def test_network_manager_disconnects_the_device(self):
        self.serve_leases()
        self.network_manager()
        self.contend("nmcli", "device", "disconnect", "braid0")

    def test_networkd_forgets_rules_that_are_not_its_own(self):
        self.networkd()
        for lines in self.contend("networkctl", "reconfigure", "wifi0"):
            self.assertGreaterEqual(len([line for line in lines if line.startswith("Deleted 6200:")]), ROUNDS)


class Udev(BootedCase):
    """Two modems that are alike: their names say only which one was found first."""

    def setUp(self):
        super().setUp()
        config = self.gateway.config
        config["peers"][0]["endpoints"] = [f"{PUBLIC[0]}:{PORT}", f"[{PUBLIC[1]}]:{PORT}"]
        self.macs = ["02:00:00:00:00:0a", "02:00:00:00:00:0b"]
        kept = config["uplinks"]
        self.addCleanup(config.update, uplinks=kept)
        config["uplinks"] = [{"name": "wifi", "mac": self.macs[0]},
                             {"name": "lte", "mac": self.macs[1], "use": "metered", "metered": {"cap": "7GB"}}]
        self.configure()
        self.networkd_file("lan0", self.site.lan_addresses)
        self.machine.enable("systemd-networkd")
        self.machine.write("etc/udev/rules.d/70-modems.rules", RENAME)
        self.machine.write("usr/local/sbin/next-name", NEXT_NAME, 0o755)

    def unplug(self):
        for index in range(2):
            self.lab.concentrator.ip("link", "del", self.site.far_device(index))

    def plug(self, index):
        """The kernel calls the modem usb0 or so; the name that udev gives it is returned."""
        far, names = self.site.far_device(index), set(self.links())
        run("ip", "link", "add", f"usb{index}", "netns", self.edge.name, "address", self.macs[index], "type", "veth",
            "peer", "name", far, "netns", self.lab.concentrator.name)
        self.eventually(lambda: any(name.startswith("wwan") for name in set(self.links()) - names), "udev's name")
        name, = set(self.links()) - names
        (near4, far4), (near6, far6) = self.site.link_addresses(index)
        self.lab.concentrator.address(far, far4 + "/24", far6 + "/64")
        self.edge.address(name, near4 + "/24", near6 + "/64")
        for prefix, router in (("0.0.0.0/0", far4), ("::/0", far6)):
            self.edge.route(prefix, "via", router, "dev", name, "metric", 100 * (index + 1))
        return name

    def links(self):
        return re.findall(r"^\d+: ([^:@]+)", self.edge.ip("-o", "link"), re.MULTILINE)

    def uplinks(self):
        return {uplink["name"]: (uplink["interface"], uplink["use"], (uplink["metered"] or {}).get("cap_bytes"))
                for uplink in self.machine.status()["gateway"]["uplinks"]}

    def carry(self):
        paths = [path for peer in self.machine.status()["peers"] for path in peer["subflows"]]
        return {(path["uplink"], path["state"]) for path in paths} == {("wifi", "active"), ("lte", "active")}

    def test_modems_swap_names(self):
        self.renew()
        self.unplug()
        self.boot()
        self.machine.run("mount", "-o", "remount,rw", "/sys")  # udev does not start in a container otherwise
        self.machine.run("systemctl", "start", "systemd-udevd")
        for order, names in (((0, 1), ("wwan0", "wwan1")), ((1, 0), ("wwan1", "wwan0"))):
            with self.subTest(order=order):
                self.assertEqual([self.plug(index) for index in order], ["wwan0", "wwan1"])
                self.machine.wait(self.carry, "both carry")
                self.assertEqual(self.uplinks(), {"wifi": (names[0], "normal", None),
                                                  "lte": (names[1], "metered", 7_000_000_000)})
                self.reaches((V4, V6))
                self.unplug()


if __name__ == "__main__":
    unittest.main()
