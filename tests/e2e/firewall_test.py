"""Firewalls of hosts on real kernels: ufw, and the rulesets that firewalld, Docker and libvirt make. What dies there is
named with chain and remedy, `braidctl firewall` lets it through and nothing else, and streams stay packets where they
would be dropped."""

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import time
import unittest

from lab.gateway import PORT, binary
from lab.links import Wire
from pair_case import V4, V6, PairCase

RULESETS = pathlib.Path(__file__).resolve().parent / "firewalls"
LAN = {V4: "192.168.10.0/24", V6: "fd00:0:0:10::/64"}
CLIENT = {V4: "192.168.10.2", V6: "fd00:0:0:10::2"}
EDGE = {V4: "192.168.10.1", V6: "fd00:0:0:10::1"}  # the gateway's addresses in the LAN
FAR = {V4: "10.0.0.2", V6: "fd01:0:0:0::2"}  # the router of the uplink
OTHER = 5001  # a port that is not for streams

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


class Firewalls(PairCase):
    LINKS = [Wire("dsl")]
    EDGE = {"device": {"networks": list(LAN.values())}, "streams": {"enabled": "on"}}
    CONCENTRATOR = {"streams": {"enabled": "on"}}

    def setUp(self):
        self.edge, self.gateway = self.lab.edge, self.lab.edge_gateway
        self.gateway.wait_up(subflows=1)
        folders = [self.lab.directory / f"{self._testMethodName}.{kind}" for kind in ("upper", "work")]
        for folder in folders:
            folder.mkdir()
        # The host's /etc with changes of this test's own
        self.etc = (f"mount -t overlay overlay -o lowerdir=/etc,upperdir={folders[0]},workdir={folders[1]} /etc; "
                    'exec "$@"')
        self.upper = folders[0]
        self.addCleanup(self.flush)

    def flush(self):
        self.nft("\n".join(f"delete table {table}" for table in self.tables()))

    def tables(self):
        listed = self.edge.run("nft", "list", "tables").splitlines()
        return [line.partition(" ")[2] for line in listed if "braid" not in line]

    def ruleset(self):
        """All rules but the daemon's, without counters."""
        texts = [self.edge.run("nft", "list", "table", *table.split()) for table in self.tables()]
        return re.sub(r"counter packets \d+ bytes \d+", "counter", "".join(texts))

    def rules_file(self, text):
        path = self.lab.directory / "rules"
        path.write_text(text, encoding="ascii")
        return path

    def nft(self, rules, namespace=None):
        """nft wants the end of a chain at the end of a line."""
        (namespace or self.edge).run("nft", "-f", self.rules_file(re.sub(r"; *(?=[a-z}])", "\n", rules)))

    def restore(self, *rules):
        """Rulesets in the words of iptables-save, for IPv4 and IPv6."""
        for program, text in zip(("iptables", "ip6tables"), rules):
            if text:
                self.edge.run(f"{program}-nft-restore", self.rules_file(text))

    def recorded(self, name):
        return (RULESETS / name).read_text(encoding="ascii")

    def host(self, *words, check=True):
        """(exit status, output) of a command at the edge."""
        command = self.edge.words("unshare", "--mount", "sh", "-ec", self.etc, "sh", *words)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60, check=False)
        if check:
            self.assertEqual(done.returncode, 0, done.stdout)
        return done.returncode, done.stdout

    def firewall(self, verb, *words, status=0):
        code, said = self.host(binary("braidctl"), "firewall", verb, self.gateway.path, *words, check=False)
        self.assertEqual(code, status, said)
        return said

    def findings(self):
        """What doctor says about the firewall: [(what, remedy)]."""
        _, said = self.host(binary("braidctl"), "doctor", self.gateway.path, "--json", check=False)
        return [(f["what"], f["remedy"]) for f in json.loads(said)["findings"] if f["check"] == "firewall"]

    # ---- what passes

    @contextlib.contextmanager
    def listening(self, namespace, port):
        def listen(kind, any_address):
            end = socket.socket(kind, socket.SOCK_STREAM)
            if kind == socket.AF_INET6:
                end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end.bind((any_address, port))
            end.listen()
            return end

        with namespace.inside(listen, socket.AF_INET, "0.0.0.0"), namespace.inside(listen, socket.AF_INET6, "::"):
            yield

    @staticmethod
    def connects(namespace, address, port, timeout=2, source=None):
        try:
            with namespace.inside(socket.create_connection, (address, port), timeout, source):
                return True
        except OSError:
            return False

    def web(self, address):
        """Whether the client gets an answer of the web server, and how many connections became streams for it."""
        before = self.gateway.status()["streams"]["accepted"]

        def ask():
            with socket.create_connection((address, 80), 2) as end:
                end.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return end.recv(4) == b"HTTP"

        try:
            answered = self.lab.client.inside(ask)
        except OSError:
            answered = False
        return answered, self.gateway.status()["streams"]["accepted"] - before

    @staticmethod
    def settle():
        """Until the daemon has seen the rules: it looks once a second."""
        time.sleep(2.4)

    def assert_nothing_else(self, address):
        """LAN to uplink, uplink to LAN, and LAN to the gateway itself stay shut."""
        self.lab.concentrator.route(CLIENT[address] + ("/128" if ":" in address else "/32"), "via",
                                    "10.0.0.1" if address == V4 else "fd01:0:0:0::1", "dev", "dsl0")
        try:
            with self.listening(self.lab.client, OTHER):
                self.assertFalse(self.connects(self.lab.concentrator, CLIENT[address], OTHER, 1), "uplink to LAN")
        finally:
            self.lab.concentrator.ip("-6" if ":" in address else "-4", "route", "del", CLIENT[address])
        with self.listening(self.lab.concentrator, OTHER):
            self.assertFalse(self.connects(self.lab.client, FAR[address], OTHER, 1), "LAN to uplink")
        with self.listening(self.edge, 8080):
            self.assertFalse(self.connects(self.lab.client, EDGE[address], 8080, 1), "LAN to the gateway")

    def assert_let_through(self, addresses, streams, *words, shut=True):
        """Packets and web connections die; after `allow` they pass, and nothing else; `remove` leaves nothing."""
        before = self.ruleset()
        self.settle()
        with self.listening(self.lab.server, OTHER):
            for address in addresses:
                self.assertFalse(self.connects(self.lab.client, address, OTHER, 1), address)
                self.assertEqual(self.web(address), (False, 0), address)
            self.firewall("show", status=1)
            self.firewall("allow", *words)
            self.assertEqual(self.findings(), [])
            self.firewall("show")
            self.settle()
            for address in addresses:
                with self.subTest("after allow", address=address):
                    self.assertTrue(self.connects(self.lab.client, address, OTHER))
                    self.assertEqual(self.web(address), (True, streams))
                    if shut:
                        self.assert_nothing_else(address)
        with self.listening(self.lab.client, OTHER):
            for address in addresses:
                with self.subTest("tunnel to LAN", address=address):
                    self.assertTrue(self.connects(self.lab.server, CLIENT[address], OTHER, source=(address, 0)))
        self.firewall("allow", *words)  # changes nothing
        self.firewall("remove")
        self.assertEqual(self.ruleset(), before)
        self.assertFalse(pathlib.Path(str(self.gateway.path).replace(".yaml", ".firewall")).exists())

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
        self.assertTrue([1 for what, remedy in found if re.search(
            r"lan0 \(192.168.10.0/24\) to braid0 are dropped by chain forward of table inet filter, by its policy",
            what) and 'nft insert rule inet filter forward' in remedy], found)
        self.assert_let_through((V4, V6), 1, "--into-chains")

    def test_a_chain_that_rejects(self):
        self.nft(NFT_REJECT)
        found = self.findings()
        self.assertTrue([1 for what, _ in found if re.search(
            "dropped by chain pass of table inet fw, by a rule of chain zones", what)], found)
        self.assertFalse([1 for what, _ in found if "streams" in what], "nothing is dropped at input")
        self.firewall("allow", "--into-chains")
        self.settle()
        for address in (V4, V6):
            self.assertEqual(self.web(address), (True, 1))

    def test_docker(self):
        self.restore(self.recorded("docker-20.10.24.v4"))
        found = self.findings()
        self.assertTrue([1 for what, remedy in found if re.search(
            r"lan0 .*to braid0 are dropped by chain FORWARD of table ip filter, by its policy", what) and
            re.search("braidctl firewall allow .*docker", remedy)], found)
        self.assertFalse([1 for what, _ in found if "table ip6" in what], found)
        with self.listening(self.lab.server, OTHER):
            self.assertFalse(self.connects(self.lab.client, V4, OTHER, 1))
            self.assertEqual(self.web(V4), (True, 1), "streams do not pass `forward`")
            self.firewall("allow")
            self.assertTrue(self.connects(self.lab.client, V4, OTHER))
            # What Docker does at its reload: it makes all its chains anew, but DOCKER-USER.
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
            # libvirt makes its chains anew at a network's start, and calls the hook.
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
        self.settle()
        with self.listening(self.lab.server, OTHER):
            self.assertFalse(self.connects(self.lab.client, V4, OTHER, 1))
            self.edge.run("nft", "add", "rule", "inet", "firewalld", "filter_FWD_public_allow", "iifname", "lan0",
                          "oifname", "braid0", "accept")
            for address in (V4, V6):
                self.assertTrue(self.connects(self.lab.client, address, OTHER))
                self.assertEqual(self.web(address), (True, 0), "as packets")

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
        self.assert_let_through((V4, V6), 1)
        self.firewall("allow")
        self.host("ufw", "reload")
        self.settle()
        for address in (V4, V6):
            with self.subTest("after a reload of ufw", address=address):
                self.assertEqual(self.web(address), (True, 1))
        self.firewall("remove")
        self.assertNotIn("braid", (self.upper / "ufw/before.rules").read_text())
        self.assertNotIn("braid", (self.upper / "ufw/user.rules").read_text())

    # ---- streams

    def test_connections_stay_packets_where_input_drops_them(self):
        for address in (V4, V6):
            self.assertEqual(self.web(address), (True, 1), "before")
        self.nft(NFT_INPUT)
        self.settle()
        for address in (V4, V6):
            with self.subTest("dropped", address=address):
                self.assertEqual(self.web(address), (True, 0), address)
        found = self.findings()
        self.assertTrue([1 for what, remedy in found if re.search(
            r"TCP connections of lan0 .*dropped by chain input of table inet filter, by its policy", what) and
            "nft insert rule inet filter input" in remedy], found)
        self.edge.run("nft", "insert", "rule", "inet", "filter", "input", "iifname", "lan0", "ip", "saddr", LAN[V4],
                      "tcp", "dport", "{ 80, 443, 8080, 8443 }", "accept")
        self.settle()
        self.assertEqual(self.web(V4), (True, 1))
        self.assertEqual(self.web(V6), (True, 0), "of the other family still")
        self.firewall("allow", "--into-chains")
        self.settle()
        self.assertEqual(self.web(V6), (True, 1))

    def test_check_names_them_as_well(self):
        self.nft(NFT_DROP)
        _, said = self.host(binary("braidctl"), "check", self.gateway.path)
        self.assertRegex(said, r"warning: this host's firewall: IPv4 packets from lan0 .* to braid0: dropped by chain "
                               r"forward of table inet filter, by its policy")
        self.assertIn("nft insert rule inet filter forward", said)

    def test_a_listening_gateway(self):
        hub = self.lab.concentrator
        self.nft(NFT_DROP, hub)
        self.addCleanup(hub.run, "nft", "delete", "table", "inet", "filter")
        done = subprocess.run(hub.words(binary("braidctl"), "doctor", self.lab.gateway.path), stdout=subprocess.PIPE,
                              text=True, check=False, timeout=60)
        self.assertRegex(done.stdout, rf"UDP port {PORT} .*dropped by chain input of table inet filter, by its policy")
        self.assertIn(f"nft insert rule inet filter input udp dport {PORT} accept", done.stdout)


if __name__ == "__main__":
    unittest.main()
