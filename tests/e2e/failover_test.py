"""Paths that fail and return while a download runs: the inner TCP connection continues."""

import subprocess
import time
import unittest

from lab.gateway import binary, shares
from pair_case import V4, PairCase

STALL_LIMIT = 1.0  # seconds; the targets pair.2 and pair.3 measure the stall itself
BACK_LIMIT = 2.0  # seconds until both gateways use a path that has returned: probes are at most a second apart


class Failover(PairCase):
    def setUp(self):
        self.lab.edge_gateway.wait_up(subflows=2)

    def begun(self):
        """A download of which a quarter has arrived."""
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        return download

    def wait_back(self, uplink):
        """Waits until both gateways use the path again. Each detects this by itself: the concentrator, which sends the
        download, may have found the path silent while the edge had nothing in flight on it."""
        self.lab.edge_gateway.wait_path(uplink, "active")
        number = next(flow["id"] for flow in self.lab.edge_gateway.paths() if flow["uplink"] == uplink)
        began = time.monotonic()
        self.lab.wait_for(lambda: any(flow["id"] == number and flow["state"] == "active"
                                      for flow in self.lab.gateway.paths()),
                          f"concentrator: the subflow of {uplink} active")
        took = time.monotonic() - began
        self.in_time(took < BACK_LIMIT, f"{uplink} was back and the concentrator did not use it for {took:.2f} s")

    def assert_used_again(self, uplink):
        before = self.lab.edge_gateway.paths()
        self.verify(self.download(self.file(5_000_000)))
        self.assertGreater(shares(before, self.lab.edge_gateway.paths()).get(uplink, 0), 0.1)

    def lose(self, uplink, fail, restore):
        """Takes an uplink down during a download, which must continue, and up again; then the uplink must be used
        again."""
        self.lab.edge_gateway.wait_up(subflows=2)
        download = self.begun()
        at = download.elapsed()
        fail()
        try:
            self.verify(download)
        finally:
            restore()
        self.wait_back(uplink)
        self.assert_used_again(uplink)
        stall = download.longest_stall(begin=at)
        self.in_time(stall < STALL_LIMIT, f"{uplink} went and the download stood still for {stall:.2f} s")

    def test_silent_death_and_return(self):
        for link in ("wifi", "lte"):
            def fail():
                self.lab.links.set(link, down=True)

            def restore():
                self.lab.links.set(link, down=False)

            with self.subTest(link=link):
                self.attempts(lambda: self.lose(link, fail, restore))

    def test_death_of_one_direction_only(self):
        for direction in ("ab", "ba"):
            with self.subTest(direction=direction):
                download = self.begun()
                self.lab.links.set("wifi", direction, down=True)
                try:
                    self.verify(download)
                finally:
                    self.lab.links.set("wifi", direction, down=False)
                self.lab.edge_gateway.wait_path("wifi", "active")

    def test_interface_set_down_and_up(self):
        self.attempts(lambda: self.lose("wifi", lambda: self.lab.edge.ip("link", "set", "wifi0", "down"),
                                        lambda: self.lab.restore_uplink(0)))

    def test_all_paths_dead_for_two_seconds(self):
        download = self.begun()
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


class OneWay(PairCase):
    """An idle path that has failed in one direction."""

    GATEWAYS = False
    KEEPALIVE = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()
        for gateway in cls.lab.gateways():
            for peer in gateway.config["peers"]:
                peer["keepalive"] = f"{cls.KEEPALIVE}s"
            gateway.start()
        cls.lab.edge_gateway.wait_up(subflows=2)
        cls.lab.gateway.wait_up(subflows=2)

    def states(self, uplink="lte"):
        """The state of its subflow at both gateways, the edge first."""
        number = next(flow["id"] for flow in self.lab.edge_gateway.paths() if flow["uplink"] == uplink)
        return [next(flow for flow in gateway.paths() if flow["id"] == number)
                for gateway in (self.lab.edge_gateway, self.lab.gateway)]

    def are(self, *states):
        return all(flow["state"] in states for flow in self.states())

    def doctors(self):
        """The doctor's findings about paths at the edge and at the concentrator."""
        out = []
        for gateway in (self.lab.edge_gateway, self.lab.gateway):
            done = subprocess.run(gateway.namespace.words(binary("braidctl"), "doctor", gateway.path),
                                  stdout=subprocess.PIPE, text=True, check=False, timeout=40)
            out.append(" ".join(done.stdout.split()) if done.returncode else "")
        return out

    def test_both_gateways_and_their_doctors_know_it(self):
        time.sleep(11)  # before this time the doctor only asks to wait
        hears = "what this gateway sends does not arrive, and the peer is heard"
        deaf = "nothing comes from the peer, and what this gateway sends arrives"
        for direction, said in (("ab", (hears, deaf)), ("ba", (deaf, hears))):
            with self.subTest(direction=direction):
                self.lab.links.set("lte", direction, down=True)
                try:
                    self.eventually(lambda: self.are("suspect", "failed"), "both call the path dead",
                                    timeout=self.KEEPALIVE + 1)
                    time.sleep(3)
                    self.assertTrue(self.are("suspect", "failed"), self.states())
                    self.eventually(lambda: all(text in told for text, told in zip(said, self.doctors())),
                                    "each doctor names it and its direction", timeout=5)
                    self.assertIn("lte to concentrator", self.doctors()[0])
                    self.assertIn("find who drops UDP", self.doctors()[1])
                finally:
                    self.lab.links.set("lte", direction, down=False)
                self.eventually(lambda: self.are("active"), "both use it again", timeout=3)
                self.assertEqual(self.doctors(), ["", ""])


if __name__ == "__main__":
    unittest.main()
