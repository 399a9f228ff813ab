"""`braidctl join` where firewalls drop what the tunnel needs."""

import re
import unittest

from join_case import JoinCase
from lab import binary
from pair_case import V4, V6, unbroken


class Firewalls(JoinCase):
    def test_a_dropped_port_is_named(self):
        line = self.invite("van")
        rules = "table inet wall { chain arrivals { type filter hook input priority 0; udp dport 4433 drop; }; }"
        self.lab.concentrator.run("nft", rules)
        try:
            self.assertIn("UDP is blocked on the way", self.refused(line))
        finally:
            self.lab.concentrator.run("nft", "delete", "table", "inet", "wall")
        self.assertRegex(self.join(line), re.compile("first packet went through"))

    def ufw(self, verb):
        done = self.edge.call("ufw", *verb.split())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def block(self):
        """ufw with its defaults at the edge, until the test ends."""
        self.ufw("--force enable")

        def unblock():
            self.ufw("disable")
            for program in ("iptables", "ip6tables"):
                for words in ("-P FORWARD ACCEPT", "-F", "-X"):
                    self.edge.call(program, *words.split())

        self.addCleanup(unblock)

    def test_the_hosts_firewall_is_asked_to_let_the_lan_through(self):
        self.block()
        told = self.join(self.invite("van"))
        for family, table in (("IPv4", "ip"), ("IPv6", "ip6")):
            self.assertRegex(told, rf"{family} packets from lan0 .*dropped by chain FORWARD of table {table} filter, "
                                   "by its policy")
        self.assertIn("ufw lets them through", told)
        for address in (V4, V6):
            with self.subTest(address=address):
                self.verify(self.download(self.file(100_000), address))
        for network in (r"192\.168\.10\.0/24", "fd00:0:0:10::/64"):
            self.assertRegex(self.ufw("status verbose"), rf"on braid0 +(\(v6\) +)?ALLOW FWD +{network} on lan0")
        self.edge.ctl("firewall", "remove", "edge")
        self.assertNotIn("braid0", self.ufw("status verbose"))

    def test_who_wants_the_router_kept_hears_of_the_command(self):
        self.block()
        told = self.join(self.invite("van"), "--keep-router")
        for table in ("ip", "ip6"):
            self.assertRegex(unbroken(told), "warning: this host's firewall: .*dropped by chain FORWARD of table "
                                             rf"{table} filter.*braidctl firewall allow /etc/braid/edge.yaml")
        self.assertNotIn("braid0", self.ufw("status verbose"))

    def test_a_join_that_fails_leaves_the_firewall_as_it_was(self):
        self.block()
        self.edge.starts(False)
        self.addCleanup(self.edge.starts, True)
        done = self.edge.call(binary("braidctl"), "join", "--yes", given=self.invite("van") + "\n", timeout=90)
        self.assertIn("was not reached", done.stderr)
        self.assertEqual(self.edge.files("/etc/braid"), [])
        self.assertNotIn("braid0", self.ufw("status verbose"))
        self.assertNotIn("braid", self.edge.call("cat", "/etc/ufw/before.rules", "/etc/ufw/before6.rules").stdout)


if __name__ == "__main__":
    unittest.main()
