"""Two LANs joined into one by TAP devices in bridges."""

import unittest

from lab.measure import Download
from lab.packets import VlanHost
from pair_case import PairCase

SERVER4, SERVER6 = "172.16.0.3", "fd00:0:0:16::3"


class Bridge(PairCase):
    MODE = "tap"

    def test_ping_and_neighbour_discovery(self):
        for address in (SERVER4, SERVER6):
            self.learn_mtu(address, 1472)
            for size in (56, 1200, 1350, 1452, 1472):
                with self.subTest(address=address, size=size):
                    self.assertGreaterEqual(self.ping(address, count=10, size=size, interval=0.02), 8)

    def test_a_full_ipv4_frame_is_cut_or_answered(self):
        before = self.lab.edge_gateway.drops()["too_big"]
        self.assertGreaterEqual(self.ping(SERVER4, count=10, size=1472, options=("-M", "dont")), 8)
        self.assertEqual(self.lab.edge_gateway.drops()["too_big"], before, "it was cut")
        self.lab.client.ip("route", "flush", "cache")
        out = self.lab.client.run("ping", "-n", "-c", 1, "-W", 2, "-M", "do", "-s", 1472, SERVER4, check=False)
        self.assertRegex(out, r"Frag needed and DF set \(mtu = 14\d\d\)")
        self.assertGreater(self.lab.edge_gateway.drops()["too_big"], before)

    def test_download(self):
        path = self.file(8_000_000)
        for address in (SERVER4, SERVER6):
            with self.subTest(address=address):
                self.verify(Download(self.lab, self.url(path, address)))

    def test_a_vlan_passes_with_its_tag(self):
        near = VlanHost(self.lab.client, "lan0", 77, b"\x02\x00\x00\x00\x00\x01")
        far = VlanHost(self.lab.server, "lan0", 77, b"\x02\x00\x00\x00\x00\x02")
        other = VlanHost(self.lab.server, "lan0", 78, b"\x02\x00\x00\x00\x00\x03")
        try:
            self.assertGreaterEqual(near.ping(count=10), 8)
            self.assertGreaterEqual(near.ping(count=10, size=1200), 8)
            far.close()
            self.assertEqual(near.ping(count=3, timeout=0.5), 0, "VLAN 78 must not answer VLAN 77")
        finally:
            for host in (near, far, other):
                host.close()


if __name__ == "__main__":
    unittest.main()
