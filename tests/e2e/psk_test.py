"""Pre-shared keys of two real daemons: equal, on one side only, different, and given by a reload."""

import base64
import json
import os
import subprocess
import unittest

from lab import Link, binary
from pair_case import V4, PairCase

REASON = "pre-shared key differs or is set on one side only"


class PresharedKeys(PairCase):
    LINKS = [Link("wifi", 100, 5)]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()

    def setUp(self):
        self.hub, self.edge = self.lab.gateway, self.lab.edge_gateway
        self.keys = [os.urandom(32), os.urandom(32)]
        for number, key in enumerate(self.keys):
            path = self.lab.directory / f"{number}.psk"
            path.touch()
            path.chmod(0o600)
            path.write_bytes(base64.b64encode(key) + b"\n")

    def tearDown(self):
        for gateway in (self.edge, self.hub):
            if gateway.process:
                gateway.stop()
            gateway.config["peers"][0].pop("psk", None)

    def give(self, gateway, number):
        """Which of the keys it has; None: none."""
        gateway.config["peers"][0].pop("psk", None)
        if number is not None:
            gateway.config["peers"][0]["psk"] = f"{number}.psk"

    def both(self):
        return [(self.edge, "concentrator"), (self.hub, "edge")]

    def start(self, of_edge, of_hub):
        for gateway, number in ((self.hub, of_hub), (self.edge, of_edge)):
            self.give(gateway, number)
            gateway.start()

    def refusal(self, gateway):
        return gateway.status()["peers"][0]["refusal"]

    def refused(self):
        """Both sides say why there is no session, and nothing crosses."""
        for gateway, peer in self.both():
            self.eventually(lambda gateway=gateway: self.refusal(gateway) == REASON, f"{gateway.name} says why", 5)
            self.lab.wait_for_line(gateway.name, f"peer {peer}: {REASON}; give both gateways the same 'psk', or none")
            self.assertIn(f"\n{peer}: {REASON}\n", gateway.ctl("status"))
            self.assertEqual(gateway.status()["peers"][0]["up"], False)
        self.assertEqual(self.ping(V4, count=5, wait=0.5), 0)

    def doctor(self, gateway):
        done = subprocess.run(gateway.namespace.words(binary("braidctl"), "doctor", gateway.path),
                              capture_output=True, text=True, timeout=60, check=False)
        return " ".join(done.stdout.split())

    def works(self):
        self.edge.wait_up()
        self.assertGreaterEqual(self.ping(V4), 4)
        for gateway, _ in self.both():
            self.assertEqual(self.refusal(gateway), "")

    def mended(self):
        """The hub gets the edge's key, and a reload is enough."""
        self.give(self.hub, 0)
        self.hub.reload()
        self.works()

    def test_equal_ones_carry_data(self):
        self.start(0, 0)
        self.works()
        for gateway, _ in self.both():
            self.assertNotIn(base64.b64encode(self.keys[0]).decode(), json.dumps(gateway.status()))
            self.assertNotIn(base64.b64encode(self.keys[0]).decode(), self.lab.log(gateway.name).read_text())

    def test_on_one_side_only_it_is_refused(self):
        for of_edge, of_hub in ((0, None), (None, 0)):
            with self.subTest(edge=of_edge, hub=of_hub):
                self.start(of_edge, of_hub)
                self.refused()
                for gateway, _ in self.both():
                    gateway.stop()

    def test_different_ones_are_refused_and_a_reload_mends_it(self):
        self.start(0, 1)
        self.refused()
        for gateway, peer in self.both():
            said = f"{peer} is not up: {REASON}"
            self.eventually(lambda gateway=gateway, said=said: said in self.doctor(gateway), "the doctor says why", 15)
            self.assertIn("put the same key into the files of 'psk' at both gateways", self.doctor(gateway))
        self.mended()

    def test_a_reload_that_adds_it_ends_the_session(self):
        self.start(None, None)
        self.works()
        self.give(self.edge, 0)
        self.edge.reload()
        self.refused()
        self.mended()

    def test_a_key_that_others_may_read_is_not_taken(self):
        self.start(None, None)
        self.works()
        (self.lab.directory / "0.psk").chmod(0o644)
        self.give(self.edge, 0)
        self.edge.reload()
        self.lab.wait_for_line(self.edge.name, "the pre-shared key can be used by others than its owner; run: chmod")
        self.works()


if __name__ == "__main__":
    unittest.main()
