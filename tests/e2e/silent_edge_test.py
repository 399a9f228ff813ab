"""A gateway without `listen` answers nobody, not even another edge that knows its pin and the ports of its uplinks."""

import unittest

from lab import Link, binary, run
from lab.gateway import Gateway, make_identities
from pair_case import PairCase


class SilentEdge(PairCase):
    LINKS = [Link("wifi", 50, 5), Link("lte", 50, 5)]

    def test_another_edge_that_knows_its_pin_gets_no_answer_until_it_listens(self):
        edge, folder = self.lab.edge_gateway, self.lab.directory
        make_identities(folder, ["other"])
        pin = run(binary("braidctl"), "pin", folder / "edge.crt").strip()
        ends = [flow["remote"] for flow in self.lab.gateway.status()["peers"][0]["subflows"]]
        self.assertEqual(len(ends), 2)
        other = Gateway(self.lab, "other", self.lab.concentrator, {
            "identity": {"key": "other.key", "certificate": "other.crt"}, "device": {"name": "braid9"},
            "control": {"socket": str(folder / "other.sock")}, "state": str(folder / "other.state"),
            "uplinks": [{"name": f"way{number}", "interface": self.lab.sites[0].far_device(number), "gateway": "none"}
                        for number in (0, 1)],
            "peers": [{"name": "edge", "pin": pin, "endpoints": ends, "prefixes": ["10.88.0.0/16"]}]})

        def unexpected():
            return edge.status()["drops"]["handshake_unexpected"]

        before = unexpected()
        other.start()
        self.addCleanup(other.stop)
        self.eventually(lambda: unexpected() >= before + 4, "handshakes of the other edge")
        self.lab.wait_for_line("other", "no answer", timeout=20)
        self.assertNotIn("does not accept us", self.lab.log("other").read_text(encoding="utf-8"))
        self.assertEqual(self.ping(), 5)
        edge.config["listen"] = ["0.0.0.0:4499"]
        self.addCleanup(edge.config.pop, "listen")
        edge.reload()
        self.lab.wait_for_line("other", "does not accept us", timeout=20)


if __name__ == "__main__":
    unittest.main()
