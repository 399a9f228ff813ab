"""Preferences of uplinks: the concentrator is told, files survive restarts, and limits hold with real kernels."""

import unittest

from lab import Link
from lab.gateway import shares
from pair_case import PairCase


class Preference(PairCase):
    LINKS = [Link("dsl", 30, 20), Link("lte", 30, 40)]

    def setUp(self):
        self.edge = self.lab.edge_gateway
        self.edge.config["state"] = str(self.lab.directory / "edge.state")
        self.edge.config["peers"][0]["keepalive"] = "1s"  # what an idle uplink counts
        self.edge.restart()
        self.edge.wait_up(subflows=2)
        self.lab.gateway.wait_up(subflows=2)

    def prefer(self, uplinks, **keys):
        """Reloads the edge with these keys at only these uplinks."""
        plain = [{"name": u["name"], "interface": u["interface"]} for u in self.edge.config["uplinks"]]
        self.edge.config["uplinks"] = [{**u, **keys} if u["name"] in uplinks else u for u in plain]
        self.edge.reload()

    def uses(self):
        return sorted(flow["use"] for flow in self.lab.gateway.paths())

    def test_the_concentrator_keeps_a_backup_free(self):
        self.prefer(["lte"], use="backup")
        self.eventually(lambda: self.uses() == ["backup", "normal"], "the concentrator is told")
        before = self.edge.paths()
        self.verify(self.download(self.file(6_000_000)))
        self.assertLess(shares(before, self.edge.paths())["lte"], 0.01)
        self.assertIn("backup", self.edge.ctl("status"))
        self.prefer([])
        self.eventually(lambda: self.uses() == ["normal", "normal"], "the concentrator is told that it is over")

    def test_counts_survive_a_restart(self):
        def used():
            return self.edge.status()["gateway"]["uplinks"][1]["metered"]["used_bytes"]

        self.prefer(["lte"], metered={"cap": "1GB", "period": "week"})
        self.eventually(lambda: self.uses() == ["metered", "normal"], "the concentrator is told")
        self.eventually(lambda: used() > 0, "something is counted", timeout=15)
        before = used()
        self.edge.restart()
        self.edge.wait_up(subflows=2)
        self.assertGreaterEqual(used(), before)
        self.assertIn("% of 1.00 GB until", self.edge.ctl("status"))

    def test_limits_hold_both_ways_of_a_download(self):
        self.prefer(["dsl", "lte"], **{"rate-limit": {"down": "4Mbit/s", "up": "1Mbit/s"}})
        self.eventually(lambda: {flow["limit_bytes_per_s"] for flow in self.lab.gateway.paths()} == {500000},
                        "the concentrator is told")
        download = self.download(self.file(3_000_000))
        self.verify(download)
        self.assertGreater(download.elapsed(), 3_000_000 / 1_000_000 * 0.95, "two uplinks of 4 Mbit/s")


if __name__ == "__main__":
    unittest.main()
