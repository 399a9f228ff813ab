"""Unmodified programs through a pair of gateways over a lossy WiFi and an LTE link."""

import hashlib
import subprocess
import unittest

from lab.measure import iperf3
from lab.services import Dnsmasq, Iperf3, Sshd, make_file
from pair_case import V4, V6, PairCase


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


if __name__ == "__main__":
    unittest.main()
