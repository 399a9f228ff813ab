"""Paths that are lost and return while a download runs: the inner TCP connection goes on."""

import time
import unittest

from lab.gateway import shares
from pair_case import V4, PairCase

STALL_LIMIT = 1.0  # seconds; the targets pair.2 and pair.3 measure the stall itself


class Failover(PairCase):
    def setUp(self):
        self.lab.edge_gateway.wait_up(subflows=2)

    def assert_used_again(self, uplink):
        before = self.lab.edge_gateway.paths()
        self.verify(self.download(self.file(5_000_000)))
        self.assertGreater(shares(before, self.lab.edge_gateway.paths()).get(uplink, 0), 0.1)

    def test_silent_death_and_return(self):
        for link in ("wifi", "lte"):
            with self.subTest(link=link):
                download = self.download(self.file(12_000_000))
                download.wait_for_size(3_000_000)
                at = download.elapsed()
                self.lab.links.set(link, down=True)
                try:
                    self.verify(download)
                finally:
                    self.lab.links.set(link, down=False)
                self.assertLess(download.longest_stall(begin=at), STALL_LIMIT)
                self.lab.edge_gateway.wait_path(link, "active")
                self.assert_used_again(link)

    def test_death_of_one_direction_only(self):
        for direction in ("ab", "ba"):
            with self.subTest(direction=direction):
                download = self.download(self.file(12_000_000))
                download.wait_for_size(3_000_000)
                self.lab.links.set("wifi", direction, down=True)
                try:
                    self.verify(download)
                finally:
                    self.lab.links.set("wifi", direction, down=False)
                self.lab.edge_gateway.wait_path("wifi", "active")

    def test_interface_set_down_and_up(self):
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        at = download.elapsed()
        self.lab.edge.ip("link", "set", "wifi0", "down")
        try:
            self.verify(download)
        finally:
            self.lab.restore_uplink(0)
        self.assertLess(download.longest_stall(begin=at), STALL_LIMIT)
        self.lab.edge_gateway.wait_path("wifi", "active")
        self.assert_used_again("wifi")

    def test_all_paths_dead_for_two_seconds(self):
        download = self.download(self.file(10_000_000))
        download.wait_for_size(3_000_000)
        for link in ("wifi", "lte"):
            self.lab.links.set(link, down=True)
        time.sleep(2)
        for link in ("wifi", "lte"):
            self.lab.links.set(link, down=False)
        self.verify(download)

    def test_idle_pair_notices_and_recovers(self):
        self.lab.links.set("lte", down=True)
        time.sleep(1)
        self.assertGreaterEqual(self.ping(V4, count=5), 4)
        self.lab.links.set("lte", down=False)
        self.lab.edge_gateway.wait_path("lte", "active", timeout=20)


if __name__ == "__main__":
    unittest.main()
