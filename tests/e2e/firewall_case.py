"""The base class of the tests with firewalls: one edge with a LAN, what passes there, and what doctor says."""

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import time

from lab.gateway import binary
from lab.links import Wire
from lab.netns import run
from pair_case import V4, V6, PairCase

RULESETS = pathlib.Path(__file__).resolve().parent / "firewalls"
LAN = {V4: "192.168.10.0/24", V6: "fd00:0:0:10::/64"}
CLIENT = {V4: "192.168.10.2", V6: "fd00:0:0:10::2"}
EDGE = {V4: "192.168.10.1", V6: "fd00:0:0:10::1"}  # the gateway's addresses in the LAN
FAR = {V4: "10.0.0.2", V6: "fd01:0:0:0::2"}  # the router of the uplink
OTHER = 5001  # a port that is not for streams
LOOKS = 15  # seconds until the daemon has seen a change of the rules at the latest
PAST_THE_TUNNEL = 1000  # routing table, and priority of its rule, of packets that go by an uplink themselves


class FirewallCase(PairCase):
    LINKS = [Wire("dsl")]
    EDGE = {"device": {"networks": list(LAN.values())}, "streams": {"enabled": "on"}}
    CONCENTRATOR = {"streams": {"enabled": "on"}}

    def setUp(self):
        self.edge, self.gateway = self.lab.edge, self.lab.edge_gateway
        self.gateway.wait_up(subflows=1)
        root = self.lab.directory / self._testMethodName
        root.mkdir()
        run("mount", "-t", "tmpfs", "tmpfs", root)  # an overlay's upper folder must not be on another overlay
        self.addCleanup(run, "umount", "-l", root)
        folders = [root / "upper", root / "work"]
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

    def assert_web(self, address, answered, streams, why=""):
        """The daemon looks once a second at the rules, and less often where reading them takes long."""
        deadline = time.monotonic() + LOOKS
        while (found := self.web(address)) != (answered, streams) and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertEqual(found, (answered, streams), f"{address} {why}")

    def assert_nothing_else(self, address):
        """LAN to uplink, uplink to LAN, and LAN to the gateway itself stay shut."""
        family, hub = "-6" if ":" in address else "-4", self.lab.concentrator
        rule = ("priority", PAST_THE_TUNNEL, "to", CLIENT[address], "lookup", PAST_THE_TUNNEL)
        hub.ip(family, "route", "add", CLIENT[address], "via", "10.0.0.1" if address == V4 else "fd01:0:0:0::1",
               "dev", "dsl0", "table", PAST_THE_TUNNEL)
        hub.ip(family, "rule", "add", *rule)
        try:
            with self.listening(self.lab.client, OTHER):
                self.assertFalse(self.connects(self.lab.concentrator, CLIENT[address], OTHER, 1), "uplink to LAN")
        finally:
            hub.ip(family, "rule", "del", *rule)
            hub.ip(family, "route", "flush", "table", PAST_THE_TUNNEL)
        with self.listening(self.lab.concentrator, OTHER):
            self.assertFalse(self.connects(self.lab.client, FAR[address], OTHER, 1), "LAN to uplink")
        with self.listening(self.edge, 8080):
            self.assertFalse(self.connects(self.lab.client, EDGE[address], 8080, 1), "LAN to the gateway")

    def assert_let_through(self, addresses, streams, *words, shut=True):
        """Packets and web connections die; after `allow` they pass, and nothing else; `remove` leaves nothing."""
        before = self.ruleset()
        with self.listening(self.lab.server, OTHER):
            for address in addresses:
                self.assertFalse(self.connects(self.lab.client, address, OTHER, 1), address)
                self.assert_web(address, False, 0)
            self.firewall("show", status=1)
            self.firewall("allow", *words)
            self.assertEqual(self.findings(), [])
            self.firewall("show")
            for address in addresses:
                with self.subTest("after allow", address=address):
                    self.assertTrue(self.connects(self.lab.client, address, OTHER))
                    self.assert_web(address, True, streams)
                    if shut:
                        self.assert_nothing_else(address)
        with self.listening(self.lab.client, OTHER):
            for address in addresses:
                with self.subTest("tunnel to LAN", address=address):
                    self.assertTrue(self.connects(self.lab.server, CLIENT[address], OTHER, source=(address, 0)))
        self.firewall("allow", *words)  # changes nothing
        self.firewall("remove")
        self.assertEqual(self.ruleset(), before)
        self.assertFalse(self.gateway.path.with_suffix(".firewall").exists())
