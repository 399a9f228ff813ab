"""Firewalls of hosts on real kernels: ufw, and the rulesets that firewalld, Docker and libvirt make. What dies there is
named with chain and remedy, `braidctl firewall` lets it through and nothing else, and streams stay packets where they
would be dropped."""

import re
import subprocess
import unittest

from firewall_case import CLIENT, LAN, OTHER, FirewallCase
from lab.gateway import PORT, binary
from pair_case import V4, V6, unbroken

DROP = """*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
{icmp}-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
"""
DROP4, DROP6 = DROP.format(icmp=""), DROP.format(icmp="-A INPUT -p ipv6-icmp -j ACCEPT\n")
NFT_DROP = """table inet filter {
  chain input { type filter hook input priority 0; policy drop;
    iif lo accept
    ct state established,related accept
    meta l4proto ipv6-icmp accept
  }
  chain forward { type filter hook forward priority 0; policy drop;
    ct state { established, related } accept
  }
}
"""
NFT_REJECT = """table inet fw {
  set blocked { type ipv4_addr; flags interval; elements = { 203.0.113.128/25 } }
  chain zones { iifname vmap { "dsl0" : jump wan, "lan0" : jump lan }; reject with icmpx admin-prohibited; }
  chain wan { ip saddr @blocked drop; tcp dport 22 accept; }
  chain lan { oifname "dsl0" tcp dport 443 accept; }
  chain pass { type filter hook forward priority filter; ct state vmap { established : accept, related : accept }
    jump zones
  }
}
"""
NFT_INPUT = """table inet filter {
  chain input { type filter hook input priority 0; policy drop;
    iif lo accept
    ct state established,related accept
    meta l4proto ipv6-icmp accept
    tcp dport 22 accept
  }
}
"""
NFT_LIMIT = """table inet fw4 {
  chain syn_flood { limit rate 1000/second burst 500 packets return; drop; }
  chain late { counter; }
  chain guarded { meta l4proto tcp limit rate 1000/second goto late; meta l4proto tcp drop; }
  chain others { ip saddr vmap { 198.51.100.0/24 : drop, * : accept }; drop; }
  chain input { type filter hook input priority 0; policy accept;
    tcp flags & (fin|syn|rst|ack) == syn jump syn_flood
    jump guarded
    iifname "lan0" ct state new meta l4proto udp jump others
  }
}
"""


class Firewalls(FirewallCase):
    # ---- rulesets of programs

    def test_a_drop_policy_of_iptables(self):
        self.restore(DROP4, DROP6)
        found = self.findings()
        for version in ("ip", "ip6"):
            for chain, way in (("FORWARD", "lan0 .*to braid0"), ("FORWARD", "braid0 to lan0"), ("INPUT", "lan0")):
                self.assertTrue([1 for what, remedy in found if re.search(
                    rf"{way}.* dropped by chain {chain} of table {version} filter, by its policy", what) and re.search(
                        rf"{version}tables -w -I {chain} -i", remedy)], (version, chain, way, found))
        self.firewall("allow", status=1)
        self.assertEqual(self.findings(), found, "without being asked, nothing is added to a chain of nobody")
        self.assert_let_through((V4, V6), 1, "--into-chains")

    def test_a_drop_policy_of_nftables(self):
        self.nft(NFT_DROP)
        found = self.findings()
        for network in LAN.values():
            self.assertTrue([1 for what, remedy in found if re.search(
                rf"lan0 \({network}\) to braid0 are dropped by chain forward of table inet filter, by its policy",
                what) and 'nft insert rule inet filter forward' in remedy], (network, found))
        self.assert_let_through((V4, V6), 1, "--into-chains")

    def test_a_chain_that_rejects(self):
        self.nft(NFT_REJECT)
        found = self.findings()
        for network in LAN.values():
            self.assertTrue([1 for what, _ in found if re.search(
                rf"{network}.* dropped by chain pass of table inet fw, by a rule of chain zones", what)],
                            (network, found))
        self.assertFalse([1 for what, _ in found if "streams" in what], "nothing is dropped at input")
        self.firewall("allow", "--into-chains")
        for address in (V4, V6):
            self.assert_web(address, True, 1)

    def test_docker(self):
        self.restore(self.recorded("docker-20.10.24.v4"))
        found = self.findings()
        self.assertTrue([1 for what, remedy in found if re.search(
            r"lan0 .*to braid0 are dropped by chain FORWARD of table ip filter, by its policy", what) and
            re.search("braidctl firewall allow .*docker", remedy)], found)
        self.assertFalse([1 for what, _ in found if "table ip6" in what], found)
        with self.listening(self.lab.server, OTHER):
            self.assertFalse(self.connects(self.lab.client, V4, OTHER, 1))
            self.assert_web(V4, True, 1, "streams do not pass `forward`")
            self.firewall("allow")
            self.assertTrue(self.connects(self.lab.client, V4, OTHER))
            # What Docker does at its reload: it makes all its chains again, but DOCKER-USER.
            rules = "".join(line for line in self.recorded("docker-20.10.24.v4").splitlines(True)
                            if "DOCKER-USER" not in line or line.startswith("-A FORWARD"))
            self.edge.run("iptables-nft-restore", "--noflush", self.rules_file(rules))
            self.assertTrue(self.connects(self.lab.client, V4, OTHER))
        self.firewall("remove")
        self.assertNotIn("braid", self.edge.run("iptables-save"))

    def test_libvirt(self):
        """Its network is the LAN: guests get out, but nobody gets in."""
        rules = self.recorded("libvirt-9.0.0.v4").replace("virbr0", "lan0").replace("192.168.122.0/24", LAN[V4])
        self.restore(rules)
        found = self.findings()
        self.assertTrue([1 for what, remedy in found if re.search(
            r"new IPv4 connections from braid0 to lan0 .*by a rule of chain LIBVIRT_FWI", what) and
            re.search("braidctl firewall allow .*libvirt", remedy)], found)
        with self.listening(self.lab.client, OTHER):
            self.assertFalse(self.connects(self.lab.server, CLIENT[V4], OTHER, 1, (V4, 0)))
            self.firewall("allow")
            self.assertTrue(self.connects(self.lab.server, CLIENT[V4], OTHER, source=(V4, 0)))
            hook = self.upper / "libvirt/hooks/network.d" / f"braid-{self.gateway.name}"
            self.assertEqual(hook.stat().st_mode & 0o777, 0o755)
            # libvirt makes its chains again at a network's start, and calls the hook.
            self.edge.run("iptables", "-F", "FORWARD")
            self.restore(rules)
            self.assertFalse(self.connects(self.lab.server, CLIENT[V4], OTHER, 1, (V4, 0)))
            self.edge.run(hook, "default", "started", "begin", "-")
            self.assertTrue(self.connects(self.lab.server, CLIENT[V4], OTHER, source=(V4, 0)))
        self.firewall("remove")
        self.assertFalse(hook.exists())
        self.assertNotIn("braid", self.edge.run("iptables-save"))

    def test_firewalld(self):
        self.nft(self.recorded("firewalld-1.3.3.nft"))
        found = self.findings()
        for address in (V4, V6):
            self.assertTrue([1 for what, remedy in found if re.search(
                rf"lan0 \({LAN[address]}\) to braid0 are dropped by chain filter_FORWARD of table inet firewalld, "
                "by a rule of chain filter_FWD_public", what) and
                re.search("braidctl firewall allow .*firewalld", remedy)], found)
        self.assertFalse([1 for what, _ in found if "streams" in what], "they are carried as packets")
        with self.listening(self.lab.server, OTHER):
            self.assertFalse(self.connects(self.lab.client, V4, OTHER, 1))
            self.edge.run("nft", "add", "rule", "inet", "firewalld", "filter_FWD_public_allow", "iifname", "lan0",
                          "oifname", "braid0", "accept")
            for address in (V4, V6):
                self.assertTrue(self.connects(self.lab.client, address, OTHER))
                self.assert_web(address, True, 0, "as packets")

    def test_ufw_as_recorded(self):
        self.restore(self.recorded("ufw-0.36.2.v4"), self.recorded("ufw-0.36.2.v6"))
        found = self.findings()
        for version, chain in (("ip", "ufw-not-local"), ("ip", ""), ("ip6", "")):
            self.assertTrue([1 for what, _ in found if re.search(
                rf"table {version} filter.*{chain}", what)], (version, chain, found))
        self.assertTrue(all(re.search("braidctl firewall allow .*ufw", remedy) for _, remedy in found), found)

    # ---- the program itself

    def test_ufw(self):
        self.host("ufw", "--force", "enable")
        self.addCleanup(self.host, "ufw", "disable")
        self.host("ufw", "reload")  # rules for IPv6 are complete from the first reload on
        found = self.findings()
        for network in LAN.values():
            for way in (rf"packets from lan0 \({network}\) to braid0", rf"TCP connections of lan0 \({network}\)"):
                self.assertTrue([1 for what, _ in found if re.search(rf"{way} .*dropped by chain", what)], (way, found))
        self.assert_let_through((V4, V6), 1)
        self.firewall("allow")
        self.host("ufw", "reload")
        for address in (V4, V6):
            with self.subTest("after a reload of ufw", address=address):
                self.assert_web(address, True, 1)
        self.firewall("remove")
        self.assertNotIn("braid", (self.upper / "ufw/before.rules").read_text())
        self.assertNotIn("braid", (self.upper / "ufw/user.rules").read_text())

    # ---- the removal of the package

    def test_the_removal_of_the_package_takes_it_back(self):
        for with_configuration in (True, False):
            with self.subTest(with_configuration=with_configuration):
                self.nft(NFT_DROP)
                before = self.ruleset()
                self.firewall("allow", "--into-chains")
                allowed = self.ruleset()
                self.assertNotEqual(allowed, before)
                self.call_prerm("upgrade", "1.0")
                self.assertEqual(self.ruleset(), allowed, "an upgrade leaves it")
                if not with_configuration:
                    self.gateway.path.unlink()
                    self.addCleanup(self.gateway.write_config)
                self.call_prerm("remove")
                self.assertEqual(self.ruleset(), before)
                self.assertFalse(self.gateway.path.with_suffix(".firewall").exists())
                self.flush()

    # ---- streams

    def test_connections_stay_packets_where_input_drops_them(self):
        for address in (V4, V6):
            self.assert_web(address, True, 1, "before")
        self.nft(NFT_INPUT)
        for address in (V4, V6):
            with self.subTest("dropped", address=address):
                self.assert_web(address, True, 0)
        found = self.findings()
        self.assertTrue([1 for what, remedy in found if re.search(
            r"TCP connections of lan0 .*dropped by chain input of table inet filter, by its policy", what) and
            "nft insert rule inet filter input" in remedy], found)
        self.edge.run("nft", "insert", "rule", "inet", "filter", "input", "iifname", "lan0", "ip", "saddr", LAN[V4],
                      "tcp", "dport", "{ 80, 443, 8080, 8443 }", "accept")
        self.assert_web(V4, True, 1)
        self.assert_web(V6, True, 0, "of the other family still")
        self.firewall("allow", "--into-chains")
        self.assert_web(V6, True, 1)

    def test_what_only_may_drop_is_no_finding(self):
        """As OpenWrt's firewall limits new connections, and with expressions that write registers."""
        self.nft(NFT_LIMIT)
        self.assertEqual(self.findings(), [])
        for address in (V4, V6):
            self.assert_web(address, True, 1)
        self.nft("add chain inet fw4 input { policy drop; }\n")
        self.assertTrue([1 for what, _ in self.findings() if re.search(
            r"TCP connections of lan0 .*dropped by chain input of table inet fw4, by its policy", what)])
        self.nft("add rule inet fw4 input meta l4proto tcp socket transparent 1 accept\n")
        self.assertEqual(self.findings(), [], "nobody knows what such a rule finds")

    def test_a_rule_behind_many_others_is_found(self):
        rules = "".join(f"add rule inet fw4 input ip saddr 203.0.113.{i % 250} tcp dport {i} drop\n"
                        for i in range(1, 20000))
        chain = "table inet fw4 { chain input { type filter hook input priority 0; policy accept; }; }\n"
        self.nft(chain + rules + "add rule inet fw4 input iifname \"lan0\" tcp dport 80 drop\n")
        self.assertTrue([1 for what, _ in self.findings() if re.search(
            r"TCP connections of lan0 .*dropped by chain input of table inet fw4", what)])

    def test_check_names_them_as_well(self):
        self.nft(NFT_DROP)
        said = unbroken(self.host(binary("braidctl"), "check", self.gateway.path)[1])
        for family in ("IPv4", "IPv6"):
            self.assertRegex(said, rf"warning: this host's firewall: {family} packets from lan0 .* to braid0: dropped "
                                   "by chain forward of table inet filter, by its policy")
        self.assertIn("nft insert rule inet filter forward", said)

    def test_a_listening_gateway(self):
        hub = self.lab.concentrator
        for table in ("ip", "ip6"):
            with self.subTest(table):
                self.nft(NFT_DROP.replace("table inet", f"table {table}"), hub)
                self.addCleanup(hub.run, "nft", "delete", "table", table, "filter", check=False)
                done = subprocess.run(hub.words(binary("braidctl"), "doctor", self.lab.gateway.path), text=True,
                                      stdout=subprocess.PIPE, check=False, timeout=60)
                self.assertRegex(done.stdout, rf"UDP port {PORT} .*dropped by chain input of table {table} filter, "
                                              "by its policy")
                self.assertIn(f"nft insert rule {table} filter input udp dport {PORT} accept", done.stdout)
                hub.run("nft", "delete", "table", table, "filter")


class Legacy(FirewallCase):
    """Rules that the older interface of the kernel has. Its tables stay with the namespace once they are used."""

    def test_a_drop_policy(self):
        for version, address in (("", V4), ("6", V6)):
            with self.subTest(version=version):
                self.assertEqual(self.ping(address), 5)
                self.edge.run(f"ip{version}tables-legacy", "-P", "FORWARD", "DROP")
                self.assertEqual(self.ping(address, count=1, wait=0.3), 0)
                _, said = self.host(binary("braidctl"), "doctor", self.gateway.path, check=False)
                self.assertIn(f"rules of ip{version}tables-legacy are not read: ip{version}tables-legacy -S shows them",
                              " ".join(said.split()))
                self.firewall("allow", "--into-chains")
                self.assertEqual(self.ping(address, count=1, wait=0.3), 0, "nothing can be done about what is not read")
                self.edge.run(f"ip{version}tables-legacy", "-P", "FORWARD", "ACCEPT")
                self.assertEqual(self.ping(address), 5)


if __name__ == "__main__":
    unittest.main()
