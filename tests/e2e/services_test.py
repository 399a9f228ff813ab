"""Unmodified programs through a pair of gateways over a lossy WiFi and an LTE link."""

import hashlib
import json
import subprocess
import time
import unittest

from lab import Wire
from lab.gateway import PORT, binary
from lab.measure import iperf3
from lab.offloads import REFUSES_RUNS, damage_merged
from lab.services import Dnsmasq, Iperf3, Sshd, make_file
from lab.site import PUBLIC
from pair_case import V4, V6, PairCase


SETTLED = 11  # seconds that a daemon runs before doctor trusts its status


class Services(PairCase):
    OFFLOADS = True  # hosts with default settings, so that gateways receive super-packets

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        Iperf3(cls.lab)
        cls.sshd = Sshd(cls.lab)
        Dnsmasq(cls.lab, {"host.test": "192.0.2.7"}, {"large.test": ",".join(["x" * 250] * 12)})

    def test_download_over_ipv4_and_ipv6(self):
        path = self.file(5_000_000)
        for address in (V4, V6):
            with self.subTest(address=address):
                self.verify(self.download(path, address))

    def test_empty_and_tiny_files(self):
        for size in (0, 1, 1399, 1400, 1401):
            with self.subTest(size=size):
                self.verify(self.download(self.file(size)))

    def test_upload(self):
        source = self.lab.directory / "upload"
        digest = make_file(source, 5_000_000, seed=7)
        for address in (V4, V6):
            with self.subTest(address=address):
                self.lab.client.run("curl", "-sSgf", "-T", source, self.url("/uploaded", address))
                self.assertEqual(self.nginx.received("uploaded"), digest)

    def test_many_downloads_at_once(self):
        path = self.file(1_000_000)
        for download in [self.download(path, name=f"curl{number}") for number in range(8)]:
            self.verify(download)

    def test_iperf3_tcp_both_ways(self):
        for options in ([], ["-R"], ["--bidir"]):
            def transfer():
                rate = iperf3(self.lab, V4, *options)["end"]["sum_received"]["bits_per_second"]
                self.in_time(rate > 5e6, f"iperf3 {options}: {rate / 1e6:.1f} Mbit/s")

            with self.subTest(options=options):
                self.attempts(transfer)

    def test_iperf3_udp_both_ways(self):
        for options in ([], ["-R"]):
            def transfer():
                end = iperf3(self.lab, V4, "-u", "-b", "4M", "-l", 1200, *options)["end"]["sum"]
                self.assertLess(end["lost_percent"], 5)
                self.in_time(end["packets"] > 500, f"iperf3 {options}: {end['packets']} packets in 2 s")

            with self.subTest(options=options):
                self.attempts(transfer)

    def test_ssh_bulk_both_ways(self):
        source = self.lab.directory / "bulk"
        digest = make_file(source, 3_000_000, seed=9)
        out = self.lab.client.run(*self.sshd.words(V4, f"sha256sum {source}"))
        self.assertIn(digest, out)
        got = subprocess.run(self.lab.client.words(*self.sshd.words(V4, f"cat {source}")), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, check=True, timeout=60).stdout
        self.assertEqual(hashlib.sha256(got).hexdigest(), digest)
        with open(source, "rb") as file:
            out = self.lab.client.run(*self.sshd.words(V6, "sha256sum"), stdin=file)
        self.assertIn(digest, out)

    def test_dns_over_udp(self):
        for address in (V4, V6):
            with self.subTest(address=address):
                out = self.lab.client.run("dig", "+short", "+time=2", f"@{address}", "host.test")
                self.assertEqual(out.strip(), "192.0.2.7")

    def test_dns_answer_larger_than_a_packet(self):
        out = self.lab.client.run("dig", "+time=2", "+bufsize=4096", "+ignore", f"@{V4}", "TXT", "large.test")
        self.assertEqual(out.count("x" * 250), 12, out)

    def test_ping_with_sizes(self):
        for address in (V4, V6):
            self.learn_mtu(address, 3000)
            for size in (0, 56, 1200, 1400, 1472, 3000):
                with self.subTest(address=address, size=size):
                    self.assertGreaterEqual(self.ping(address, count=10, size=size, interval=0.02), 8)


class Offloads(PairCase):
    """Kernels and network cards on which segmentation offload does not work: it is noticed, switched off, and told."""

    LINKS = [Wire("dsl")]
    OFFLOADS = True
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()
        cls.hub, cls.edge = cls.lab.gateway, cls.lab.edge_gateway

    def tearDown(self):
        super().tearDown()
        self.end()

    def end(self):
        for gateway in (self.hub, self.edge):
            if gateway.process:
                gateway.stop()
            gateway.wrapper = []
        self.lab.concentrator.run("nft", "flush", "ruleset")

    def up(self):
        self.told_before = self.log()
        self.hub.start()
        self.edge.start()
        self.edge.wait_up()

    def log(self):
        log = self.lab.log(self.hub.name)
        return log.read_text(errors="replace") if log.exists() else ""

    def told(self, words):
        """How often the hub's log says so since up()."""
        return self.log()[len(self.told_before):].count(words)

    def upload(self, address, size=3_000_000):
        source = self.lab.directory / "upload"
        digest = make_file(source, size, seed=size)
        self.lab.client.run("curl", "-sSgf", "--max-time", "60", "-T", source, self.url("/uploaded", address))
        self.assertEqual(self.nginx.received("uploaded"), digest)

    def traffic(self, name):
        return self.hub.status()["host_traffic"][name]

    def findings(self):
        """What doctor says of the hub's offloads, when it trusts the daemon's status."""
        time.sleep(SETTLED)
        done = subprocess.run(self.hub.namespace.words(binary("braidctl"), "doctor", self.hub.path, "--json"),
                              stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        return [f["what"] + "; " + f["remedy"] for f in json.loads(done.stdout)["findings"] if f["check"] == "offloads"]

    def merging_is_given_up(self, endpoint):
        self.edge.config["peers"][0]["endpoints"] = [endpoint]
        self.up()
        damage_merged(self.lab.edge, self.lab.concentrator, "dsl0", PORT)
        deadline = time.monotonic() + 30
        while self.traffic("socket_merging_stopped") == 0:
            self.assertLess(time.monotonic(), deadline, self.hub.status()["host_traffic"])
            self.upload(V4)
        damaged, lost = self.traffic("socket_merged_damaged"), self.hub.drops()["decrypt_failed"]
        self.assertGreaterEqual(damaged, 16)
        for address in (V4, V6):
            self.upload(address)
        self.assertEqual(self.traffic("socket_merged_damaged"), damaged, "no more since then")
        self.assertEqual(self.hub.drops()["decrypt_failed"], lost)
        self.assertEqual(self.traffic("socket_merging_stopped"), 1)
        self.assertEqual(self.told("come damaged where the kernel has merged several (UDP GRO)"), 1)
        self.assertRegex(" ".join(self.findings()), r"\d+ datagrams came damaged where the kernel had merged several.*"
                                                    "ethtool -K INTERFACE gro off")

    def test_damaged(self):
        """A card merges datagrams and damages those behind the first."""
        self.edge.config["offloads"] = {"sockets": "off"}  # each datagram leaves by itself
        self.addCleanup(self.edge.config.pop, "offloads")
        for endpoint in (f"{PUBLIC[0]}:{PORT}", f"[{PUBLIC[1]}]:{PORT}"):
            with self.subTest(endpoint=endpoint):
                try:
                    self.merging_is_given_up(endpoint)
                finally:
                    self.end()

    def test_refused(self):
        """A device takes no more than one packet in a write."""
        self.hub.wrapper = REFUSES_RUNS
        self.up()
        for address in (V4, V6):
            self.upload(address)
        refused = self.traffic("device_runs_refused")
        self.assertIn(refused, (2, 3, 4), "one of TCP over IPv4, one over IPv6; of UDP there may be some, too")
        for address in (V4, V6):
            self.upload(address)
        self.assertEqual(self.traffic("device_runs_refused"), refused, "none is tried again")
        self.assertEqual(self.hub.status()["host_drops"]["device_write_failed"], 0, "none is lost")
        self.assertIn(self.told("refuses several packets in one write"), range(1, refused + 1))
        self.assertRegex(" ".join(self.findings()), "refuses several packets in one write to the device.*"
                                                    "offloads.device: off")


if __name__ == "__main__":
    unittest.main()
