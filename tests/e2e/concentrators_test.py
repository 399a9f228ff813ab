"""An edge with two concentrators: one fails and returns, with real kernels."""

import signal
import socket
import time
import unittest

from lab import Link
from lab.second import add_second, seconds_to_new_connection, used
from pair_case import V4, PairCase

PROMPT = 3.0  # seconds; scripts/target operate.5 has the exact limit, because a test may run on a busy machine
RETURN = 2


class Concentrators(PairCase):
    LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()
        cls.second = add_second(cls.lab, edge={"tunnel": {"failback-delay": f"{RETURN}s"},
                                               "streams": {"enabled": "on", "match": [{"ports": 8080}]}},
                                streams={"enabled": "on"})
        for gateway in (cls.second, *cls.lab.gateways()):
            gateway.start()
        cls.small = cls.url(cls.nginx.add("small", 1000))

    def setUp(self):
        self.edge = self.lab.edge_gateway
        for gateway in (self.lab.gateway, self.second):
            if gateway.process is None:
                gateway.start()
        self.eventually(lambda: all(peer["up"] for peer in self.edge.status()["peers"]), "both are up", timeout=20)
        self.eventually(lambda: used(self.edge) == "concentrator", "the first one is in use", timeout=30)

    def test_the_first_is_used_and_the_second_waits(self):
        def received():
            return {peer["name"]: peer["inner_received_bytes"] for peer in self.edge.status()["peers"]}

        before = received()
        self.verify(self.download(self.file(3_000_000)))
        self.assertGreater(received()["concentrator"] - before["concentrator"], 3_000_000)
        self.assertLess(received()["second"] - before["second"], 1000)
        text = self.edge.ctl("peers")
        self.assertRegex(text, r"concentrator +up, in use")
        self.assertRegex(text, r"second +up, standby")

    def test_the_second_takes_over_when_the_first_is_killed_and_gives_back(self):
        download = self.download(self.file(50_000_000))
        download.wait_for_size(2_000_000)
        self.lab.gateway.stop(signal.SIGKILL)
        self.assertLess(seconds_to_new_connection(self.lab, self.small), PROMPT)
        self.assertEqual(used(self.edge), "second")
        self.assertIn("peer second: is in use for group hubs: peer concentrator does not answer",
                      self.lab.log("edge").read_text(errors="replace"))
        download.stop()
        self.verify(self.download(self.file(3_000_000)))

        kept = self.download(self.file(120_000_000))  # lasts longer than the wait for the first one
        self.lab.gateway.start()
        self.eventually(lambda: used(self.edge) == "concentrator", "the first one takes over again", timeout=20)
        self.assertTrue(kept.is_alive(), "the download was to last longer")
        self.verify(kept)
        self.verify(self.download(self.file(3_000_000)))

    def test_a_machine_that_falls_silent(self):
        self.lab.concentrator.run("nft", "add", "table", "ip", "silence")
        self.lab.concentrator.run("nft", "add", "chain", "ip", "silence", "in",
                                  "{ type filter hook input priority 0; }")
        try:
            self.lab.concentrator.run("nft", "add", "rule", "ip", "silence", "in", "udp", "dport", "4433", "drop")
            self.assertLess(seconds_to_new_connection(self.lab, self.small), PROMPT)
            self.assertEqual(used(self.edge), "second")
        finally:
            self.lab.concentrator.run("nft", "delete", "table", "ip", "silence")

    def test_a_gap_of_all_uplinks_changes_nothing(self):
        download = self.download(self.file(20_000_000))
        download.wait_for_size(2_000_000)
        count = self.lab.log("edge").read_text(errors="replace").count("is in use for group")
        for link in self.LINKS:
            self.lab.links.set(link.name, down=True)
        time.sleep(1)
        for link in self.LINKS:
            self.lab.links.set(link.name, down=False)
        self.verify(download)
        self.assertEqual(self.lab.log("edge").read_text(errors="replace").count("is in use for group"), count)

    def test_streams_of_a_dead_concentrator_are_reset(self):
        self.eventually(lambda: self.edge.status()["streams"].get("intercepting"), "connections are taken over")
        listener = self.lab.server.inside(_listen)
        with listener, self.lab.client.inside(_connect) as client:
            server, _ = listener.accept()
            with server:
                client.sendall(b"x")
                self.assertEqual(server.recv(1), b"x")
                self.lab.gateway.stop(signal.SIGKILL)
                began = time.monotonic()
                with self.assertRaises((ConnectionResetError, BrokenPipeError)):
                    while time.monotonic() - began < 10:
                        client.sendall(b"x")
                        time.sleep(0.02)
                self.assertLess(time.monotonic() - began, PROMPT)


def _listen():
    listener = socket.create_server((V4, 8080))
    listener.settimeout(10)
    return listener


def _connect():
    return socket.create_connection((V4, 8080), timeout=10)


if __name__ == "__main__":
    unittest.main()
