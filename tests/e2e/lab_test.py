"""The lab itself: links have the requested properties, and nothing is left behind."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from diagnosed import DiagnosedCase
from lab import Lab, Link, Wire, clean, run
from pair_case import PairCase


class Links(PairCase):
    GATEWAYS = False
    LINKS = [Link("fast", 40, 10), Link("slow", 10, 40)]

    def test_rate_and_round_trip(self):
        for index, link in enumerate(self.LINKS):
            with self.subTest(link=link.name):
                self.attempts(lambda: self.rate_and_round_trip(Lab.server_addresses(index)[0], link))

    def rate_and_round_trip(self, address, link):
        download = self.download(self.file(int(link.rate_mbit * 1e6 / 8 * 1.5)), address)
        self.verify(download)
        goodput = download.goodput_mbit()
        self.assertLess(goodput, link.rate_mbit * 1448 / 1500)
        out = self.lab.client.run("ping", "-n", "-q", "-c", 5, "-i", 0.05, address)
        shortest = float(out.partition("mdev = ")[2].partition("/")[0])
        self.assertGreaterEqual(shortest, link.rtt_ms)
        self.in_time(goodput > link.rate_mbit * 0.75, f"{goodput:.1f} of {link.rate_mbit} Mbit/s")
        self.in_time(shortest < link.rtt_ms + 5, f"the shortest of 5 round trips took {shortest} of {link.rtt_ms} ms")

    def test_a_link_goes_down_and_up(self):
        address = Lab.server_addresses(0)[1]
        self.assertEqual(self.ping(address, count=3), 3)
        self.lab.links.set("fast", "ab", down=True)
        self.assertEqual(self.ping(address, count=2), 0)
        self.lab.links.set("fast", "ab", down=False)
        self.assertEqual(self.ping(address, count=3), 3)


class SinglePackets(PairCase):
    """Code that counts or drops packets in the lab gets single packets, not super-packets, unless a lab is configured
    for speed."""

    GATEWAYS = False
    LINKS = [Wire("wire")]
    RULES = ("add table inet sizes; add chain inet sizes pass { type filter hook forward priority 0; };"
             "add rule inet sizes pass meta length > 1500 counter;"
             "add rule inet sizes pass meta length <= 1500 counter")
    COUNTER = re.compile(r"counter packets (\d+)")

    def test_what_a_gateway_forwards(self):
        self.lab.concentrator.run("nft", self.RULES)
        self.verify(self.download(self.file(3_000_000), Lab.server_addresses(0)[0]))
        text = self.lab.concentrator.run("nft", "list", "table", "inet", "sizes")
        large, small = map(int, self.COUNTER.findall(text))
        self.assertGreater(small, 10)
        self.assertEqual(large > 0, self.OFFLOADS)


class SuperPackets(SinglePackets):
    OFFLOADS = True


class CleanUp(DiagnosedCase):
    def start(self):
        """Starts a lab in a separate process. Returns the process and the lab's name."""
        code = ("import time\nfrom lab import Lab, Link\n"
                "with Lab([Link('wifi')]) as lab:\n  print(lab.name, flush=True)\n  time.sleep(60)\n")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)
        self.addCleanup(process.stdout.close)
        return process, process.stdout.readline().strip()

    def assert_gone(self, name):
        self.assertNotIn(name, run("ip", "netns", "list"))
        self.assertFalse(clean.work_directory(name).exists())
        emulators = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                     if name.encode() in _read(path) and path.parent.name != str(os.getpid())]
        self.assertEqual(emulators, [])

    def test_signals_remove_everything(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                process, name = self.start()
                process.send_signal(number)
                process.wait(10)
                self.assert_gone(name)

    def test_left_overs_of_a_killed_lab_are_removed(self):
        process, name = self.start()
        process.kill()
        process.wait(10)
        self.assertIn(name, run("ip", "netns", "list"))
        self.assertIn(name, clean.remove_leftovers())
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and clean.work_directory(name).exists():
            time.sleep(0.05)
        self.assert_gone(name)


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    unittest.main()
