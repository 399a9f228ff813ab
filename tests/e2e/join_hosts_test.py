"""`braidctl join` on hosts that are not as the lab makes them: with a default route without a metric, with a LAN that
has no carrier, and with a concentrator behind 1:1 NAT."""

import unittest

from join_case import JoinCase
from lab import binary
from lab.bare import Machine
from lab.lab import tune
from lab.netns import join
from pair_case import V4, V6, unbroken

INNER, OUTER = "172.31.0.2", "203.0.113.50"  # of a cloud's host: its own address, and that by which it is reached


class Hosts(JoinCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud_space = cls.lab.namespace("cloud")
        tune(cls.cloud_space)
        join(cls.lab.concentrator, "cloud0", cls.cloud_space, "ens5")
        cls.lab.concentrator.address("cloud0", "172.31.0.1/24")
        cls.cloud_space.address("ens5", INNER + "/24")
        cls.cloud_space.route("0.0.0.0/0", "via", "172.31.0.1")
        cls.lab.concentrator.run("nft", f"""add table ip cloud
            add chain ip cloud in {{ type nat hook prerouting priority -100; }}
            add chain ip cloud out {{ type nat hook postrouting priority 100; }}
            add chain ip cloud first {{ type filter hook prerouting priority -300; }}
            add rule ip cloud first iifname != cloud0 ip daddr {INNER} drop
            add rule ip cloud in ip daddr {OUTER} dnat to {INNER}
            add rule ip cloud out ip saddr {INNER} snat to {OUTER}""")
        cls.cloud = Machine(cls.lab, "cloud", cls.cloud_space)
        cls.addClassCleanup(cls.cloud.stop)
        cls.cloud.ctl("setup", "--yes", "--tunnel", "10.98.0.1/24", "--network", "none")

    def test_a_default_of_metric_0(self):
        for words in (("-4", "10.0.0.2"), ("-6", "fd01::2")):
            route = ("default", "via", words[1], "dev", "wifi0", *(("metric", 1) if words[0] == "-6" else ()))
            self.edge.call("ip", words[0], "route", "add", *route)
            self.addCleanup(self.edge.call, "ip", words[0], "route", "del", *route)
        before = [self.edge.call("ip", family, "route").stdout for family in ("-4", "-6")]
        line = self.invite("van", "--network", "0.0.0.0/0", "--network", "::/0")
        self.assertIn("first packet went through", self.join(line))
        for family, to in (("-4", "198.51.100.1"), ("-6", "2001:db8:77::1")):
            self.assertIn("dev braid0", self.edge.call("ip", family, "route", "get", to).stdout)
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])
        self.leave()
        after = [self.edge.call("ip", family, "route").stdout for family in ("-4", "-6")]
        self.assertEqual(after, before)

    def test_another_tunnel(self):
        """Rules as tailscaled has them. The new gateway's guard would cut that tunnel."""
        for family in ("-4", "-6"):
            rule = ("priority", "5210", "fwmark", "0x80000/0xff0000", "lookup", "main")
            self.edge.call("ip", family, "rule", "add", *rule)
            self.addCleanup(self.edge.call, "ip", family, "rule", "del", *rule)
        everything = ("--network", "0.0.0.0/0", "--network", "::/0")
        told = self.join(self.invite("van", *everything))
        self.assertIn("note: IPv4 rule 5210: fwmark 0x80000/0xff0000 lookup 254", unbroken(told))
        self.assertIn('bypass-marks: ["0x80000/0xff0000"]', self.edge.call("cat", "/etc/braid/edge.yaml").stdout)
        self.assertNotIn("bypass-marks", self.edge.ctl("check", "/etc/braid/edge.yaml"))
        self.leave()
        line = self.invite("boat", *everything)
        told = self.edge.ctl("join", "--keep-router", "--network", "none", given=line + "\n")
        self.assertIn("Remedy: add 'bypass-marks: [0x80000/0xff0000]' to device", told, "nobody has agreed")
        self.assertNotIn("bypass-marks", self.edge.call("cat", "/etc/braid/edge.yaml").stdout)

    def test_no_carrier(self):
        line = self.invite("van")
        self.lab.client.ip("link", "set", "lan0", "down")
        self.addCleanup(self.plug)
        self.eventually(lambda: "NO-CARRIER" in self.edge.call("ip", "link", "show", "lan0").stdout, "no carrier")
        told = self.edge.ctl("join", "--yes", "--dry-run", given=line + "\n")
        self.assertIn("lan0 has no carrier now; its network is proposed all the same", told)
        self.assertIn("first packet went through", self.join(line))
        self.assertIn("192.168.10.0/24", self.edge.call("cat", "/etc/braid/edge.yaml").stdout)
        self.plug()
        self.eventually(lambda: self.ping(V4, count=1, wait=0.5) == 1, "the LAN is there")

    def plug(self):
        self.lab.client.ip("link", "set", "lan0", "up")
        for network, via in (("0.0.0.0/0", "192.168.10.1"), ("::/0", "fd00:0:0:10::1")):
            self.lab.client.route(network, "via", via)

    def test_behind_nat(self):
        told = self.cloud.call(binary("braidctl"), "invite", "van")
        self.assertRegex(told.stdout + told.stderr, "private")
        line = self.cloud.ctl("invite", "van", "--address", f"{OUTER}:4433").strip()
        told = self.join(line, "--network", "none")
        self.assertIn("the first packet went through: 10.98.0.1 answers", told)
        self.cloud.call("rm", "/var/lib/braid/concentrator.peers.d/van.yaml")
        self.cloud.ctl("reload")


if __name__ == "__main__":
    unittest.main()
