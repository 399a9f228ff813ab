"""Links that silently drop large packets."""

import unittest

from lab import Link
from pair_case import V4, V6, PairCase


class SmallFromTheStart(PairCase):
    LINKS = [Link("wifi", 50, 20, more={"mtu": 1300}), Link("lte", 30, 60, more={"mtu": 1400})]

    def test_transfers_work(self):
        for address in (V4, V6):
            with self.subTest(address=address):
                self.verify(self.download(self.file(3_000_000), address))
                self.learn_mtu(address, 1400)
                self.assertGreaterEqual(self.ping(address, count=10, size=1400), 9)


class SmallerLater(PairCase):
    LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]

    def test_a_link_that_shrinks_under_a_transfer(self):
        download = self.download(self.file(8_000_000))
        download.wait_for_size(3_000_000)
        for link, size in (("wifi", 1300), ("lte", 1400)):
            self.lab.links.set(link, mtu=size)
        self.verify(download)
        self.verify(self.download(self.file(3_000_000)))


if __name__ == "__main__":
    unittest.main()
