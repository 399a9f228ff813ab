"""A NAT between the edge and the concentrator that changes its mappings: nftables rewrites the edge's source ports and
addresses without state, at the edge's own outer interfaces."""

import unittest

from lab.netns import run
from pair_case import V4, PairCase

PORT = 4433


class Nat(PairCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        seen = [flow["remote"] for flow in cls.lab.gateway.paths()]
        cls.port = next(int(remote.partition(":")[2]) for remote in seen if remote.startswith("10.0.0.1:"))

    def tearDown(self):
        self.lab.edge.run("nft", "flush", "ruleset")
        self.lab.edge_gateway.wait_up(subflows=2)

    def rebind(self, device, true_address, true_port, seen_port, seen_address=None):
        """From now on the edge's datagrams of this port come from another port and perhaps another address."""
        seen = seen_address or true_address
        rules = f"""
flush ruleset
table ip nat {{
  chain out {{
    type filter hook postrouting priority 100;
    oifname {device} udp sport {true_port} udp dport {PORT} udp sport set {seen_port} ip saddr set {seen}
  }}
  chain in {{
    type filter hook prerouting priority -300;
    iifname {device} udp sport {PORT} udp dport {seen_port} udp dport set {true_port} ip daddr set {true_address}
  }}
}}
"""
        path = self.lab.directory / "nat.nft"
        path.write_text(rules, encoding="ascii")
        run("ip", "netns", "exec", self.lab.edge.name, "nft", "-f", path)

    def seen(self):
        return {flow["remote"] for flow in self.lab.gateway.paths()}

    def test_ports_and_addresses_change_under_traffic(self):
        download = self.download(self.file(25_000_000))
        download.wait_for_size(3_000_000)
        for seen_address, seen_port in (("10.0.0.1", 40001), ("10.0.0.1", 40002), ("10.0.0.9", 40003)):
            self.rebind("wifi0", "10.0.0.1", self.port, seen_port, seen_address)
            self.eventually(lambda: f"{seen_address}:{seen_port}" in self.seen(),
                            f"the concentrator to answer to {seen_address}:{seen_port}")
        self.verify(download)

    def test_an_idle_mapping_changes(self):
        self.rebind("wifi0", "10.0.0.1", self.port, 40004)
        self.assertGreaterEqual(self.ping(V4, count=10), 8)
        self.verify(self.download(self.file(3_000_000)))


if __name__ == "__main__":
    unittest.main()
