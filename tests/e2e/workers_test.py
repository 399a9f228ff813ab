"""Gateways with several threads: each byte arrives once and in order, and the threads share the work."""

import unittest

from lab import Wire
from lab.measure import iperf3, thread_nanoseconds
from lab.services import Iperf3, make_file
from pair_case import V4, V6, PairCase

LEAST_SHARE = 0.1  # least share of a daemon's CPU time under load that all threads except the first used


class Workers(PairCase):
    """Over wires, so that the daemons limit the traffic. The edge has two threads, the concentrator three."""

    LINKS = [Wire("wire0"), Wire("wire1")]
    OFFLOADS = True
    EDGE = {"workers": 2}
    CONCENTRATOR = {"workers": 3}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        Iperf3(cls.lab)

    def test_downloads_are_whole(self):
        path = self.file(100_000_000)
        for address in (V4, V6):
            with self.subTest(address=address):
                self.verify(self.download(path, address))

    def test_uploads_are_whole(self):
        source = self.lab.directory / "upload"
        digest = make_file(source, 100_000_000, seed=7)
        for address in (V4, V6):
            with self.subTest(address=address):
                self.lab.client.run("curl", "-sSgf", "-T", source, self.url("/uploaded", address), timeout=60)
                self.assertEqual(self.nginx.received("uploaded"), digest)

    def test_both_ways_at_once_by_all_threads(self):
        pids = [gateway.process.pid for gateway in self.lab.gateways()]
        before = [thread_nanoseconds(pid) for pid in pids]
        end = iperf3(self.lab, V4, "--bidir", "-P", 2)["end"]
        for key in ("sum_received", "sum_received_bidir_reverse"):
            self.assertGreater(end[key]["bytes"], 10_000_000)
        for pid, threads, old in zip(pids, (3, 2), before):
            spent = {thread: ns - old[thread] for thread, ns in thread_nanoseconds(pid).items()}
            self.assertEqual(len(spent), threads)
            self.assertGreater(sum(spent.values()) - spent[pid], LEAST_SHARE * sum(spent.values()), spent)

    def test_a_ping_crosses_beside_them(self):
        self.assertEqual(self.ping(count=20), 20)

    def test_a_lost_wire_is_not_noticed(self):
        """Sockets are closed and opened while threads are processing their datagrams."""
        edge = self.lab.edge_gateway
        download = self.download(self.file(400_000_000))
        download.wait_for_size(10_000_000)
        for _ in range(2):
            self.lab.edge.ip("link", "set", "wire00", "down")
            self.lab.wait_for(lambda: not edge.up(subflows=2), "the wire's subflow to go")
            self.lab.restore_uplink(0)
            edge.wait_up(subflows=2)
        self.verify(download)

    def test_z_another_number_needs_a_restart_and_the_end_is_clean(self):
        for gateway in self.lab.gateways():
            gateway.config["workers"] = 1
            gateway.reload()
            self.lab.wait_for(lambda log=self.lab.log(gateway.name): "workers" in log.read_text(encoding="utf-8"),
                              "the refusal")
            self.assertEqual(gateway.stop(), 0)


if __name__ == "__main__":
    unittest.main()
