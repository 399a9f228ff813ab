"""A LAN behind a bridge of the edge, beside br_netfilter as Docker switches it on: the web of the LAN works, as packets
while the kernel would lose what becomes a stream."""

import time
import unittest

from lab import Wire
from pair_case import V4, V6, PairCase

LAN = ["192.168.10.0/24", "fd00:0:0:10::/64"]
LOOK = 3  # seconds until the daemon has seen a change of the setting; it looks once a second
STREAMS = {"streams": {"enabled": "on"}}


class Bridges(PairCase):
    LINKS = [Wire("dsl")]
    EDGE = {**STREAMS, "device": {"networks": LAN}}
    CONCENTRATOR = STREAMS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        edge = cls.lab.edge
        edge.ip("link", "add", "br-lan", "type", "bridge")
        edge.ip("address", "flush", "dev", "lan0", "scope", "global")
        edge.ip("link", "set", "lan0", "master", "br-lan")
        edge.address("br-lan", "192.168.10.1/24", "fd00:0:0:10::1/64")
        cls.lab.edge_gateway.wait_up()

    def call(self, v4, v6):
        for name, on in (("iptables", v4), ("ip6tables", v6)):
            self.lab.edge.run("sysctl", "-qw", f"net.bridge.bridge-nf-call-{name}={on}")

    def streams(self, address):
        """How many streams a page from that address makes. The page must be whole."""
        gateway = self.lab.edge_gateway
        before = gateway.status()["streams"]["accepted"]
        self.verify(self.download(self.file(100_000), address), 8)
        return gateway.status()["streams"]["accepted"] - before

    def test_connections_are_carried_as_packets_while_br_netfilter_would_lose_them(self):
        for settings in ((1, 1), (0, 0), (1, 0), (0, 1)):
            with self.subTest(settings=settings):
                self.call(*settings)
                time.sleep(LOOK)
                self.assertEqual([self.streams(address) for address in (V4, V6)], [1 - on for on in settings])


if __name__ == "__main__":
    unittest.main()
