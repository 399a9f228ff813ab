"""Two edge gateways, each with a client, on one concentrator."""

import unittest

from pair_case import V4, V6, PairCase


class TwoSites(PairCase):
    SITES = 2

    def test_both_download_at_once(self):
        path = self.file(6_000_000)
        downloads = [self.download(path, address, namespace=site.client, name=f"curl{site.number}{len(address)}")
                     for site in self.lab.sites for address in (V4, V6)]
        for download in downloads:
            self.verify(download)

    def test_one_gateway_ends_and_the_other_does_not_notice(self):
        self.attempts(self.end_one_gateway)

    def end_one_gateway(self):
        download = self.download(self.file(15_000_000))
        download.wait_for_size(3_000_000)
        at = download.elapsed()
        self.lab.sites[1].gateway.stop()
        self.verify(download)
        self.lab.sites[1].gateway.start()
        self.lab.sites[1].gateway.wait_up(subflows=2)
        self.assertGreaterEqual(self.ping(V4, namespace=self.lab.sites[1].client), 4)
        stall = download.longest_stall(begin=at)
        self.in_time(stall < 0.5, f"another site's gateway ended, and the download stood still for {stall:.2f} s")

    def test_a_peer_may_not_use_the_addresses_of_another(self):
        before = self.lab.gateway.drops()["foreign_source"]
        stranger = self.lab.sites[0].client_address[0]
        edge, client = self.lab.sites[1].edge, self.lab.sites[1].client
        client.ip("address", "add", f"{stranger}/32", "dev", "lan0")
        edge.route(f"{stranger}/32", "dev", "lan0")
        out = client.run("ping", "-n", "-q", "-c", 5, "-i", 0.05, "-W", 1, "-I", stranger, V4, check=False)
        self.assertRegex(out, r" 0 received, \+\d errors", "the sender is told")
        self.assertGreaterEqual(self.lab.gateway.drops()["foreign_source"], before + 5)
        self.assertGreaterEqual(self.ping(V4), 4)


if __name__ == "__main__":
    unittest.main()
