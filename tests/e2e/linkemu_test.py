"""linkemu between two network namespaces:

    <prefix>-a [wifi0 10.231.7.1] ===ab==> linkemu ==> [wifi0 10.231.7.2] <prefix>-b
                                  <==ba===         <==

Needs root, ip, ping and iperf3; fails without them.
"""

import json
import os
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import unittest

from diagnosed import DiagnosedCase
from lab import priority

LINKEMU = os.path.join(os.environ.get("BRAID_BIN", "build/release/bin"), "linkemu")
PREFIX = f"lke{os.getpid()}"
A, B = f"{PREFIX}-a", f"{PREFIX}-b"
ADDRESS_A, ADDRESS_B = "10.231.7.1", "10.231.7.2"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def in_a(*command):
    return subprocess.run(("ip", "netns", "exec", A) + command, capture_output=True, text=True, timeout=60).stdout


def ping(count, *options):
    """Sequence number -> round-trip time in ms, of the answers."""
    text = in_a("ping", "-n", "-i", "0.02", "-W", "1", "-c", str(count), *options, ADDRESS_B)
    return {int(seq): float(ms) for seq, ms in re.findall(r"icmp_seq=(\d+) .*time=([\d.]+) ms", text)}


class Linkemu:
    """A running linkemu with one link, "wifi", addressed at both ends."""

    def __init__(self, ab=None, ba=None):
        self.directory = tempfile.TemporaryDirectory()
        self.socket_path = os.path.join(self.directory.name, "control.sock")
        link = {"name": "wifi", "a": {"netns": A, "device": "wifi0"}, "b": {"netns": B, "device": "wifi0"}}
        config = {"seed": 1, "control": self.socket_path, "links": [{**link, "ab": ab or {}, "ba": ba or {}}]}
        path = os.path.join(self.directory.name, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.process = subprocess.Popen([LINKEMU, path], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(f"linkemu said {line!r}")
        run("ip", "-n", A, "address", "add", ADDRESS_A, "peer", ADDRESS_B, "dev", "wifi0")
        run("ip", "-n", B, "address", "add", ADDRESS_B, "peer", ADDRESS_A, "dev", "wifi0")
        self.control = socket.socket(socket.AF_UNIX)
        self.control.settimeout(10)
        self.control.connect(self.socket_path)
        self.answers = self.control.makefile()
        return self

    def __exit__(self, *_):
        self.answers.close()
        self.control.close()
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()
        self.directory.cleanup()

    def ask_text(self, text):
        self.control.sendall(text.encode() + b"\n")
        return json.loads(self.answers.readline())

    def ask(self, **request):
        return self.ask_text(json.dumps(request))

    def set(self, direction, **params):
        answer = self.ask(cmd="set", link="wifi", direction=direction, params=params)
        assert answer == {"ok": True}, answer

    def stats(self, direction):
        return self.ask(cmd="stats")["links"]["wifi"][direction]

    def cpu_seconds(self):
        """(user, system) from /proc/PID/stat."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        tick = os.sysconf("SC_CLK_TCK")
        return int(fields[11]) / tick, int(fields[12]) / tick


class LinkemuTest(DiagnosedCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise AssertionError("needs root for network namespaces")
        priority.raise_own()

    def setUp(self):
        """Uses new namespaces, because packets of the last test's connections would be counted."""
        self.addCleanup(lambda: [subprocess.run(("ip", "netns", "delete", n), check=False) for n in (A, B)])
        for netns in (A, B):
            run("ip", "netns", "add", netns)
            run("ip", "-n", netns, "link", "set", "lo", "up")
            for name in ("all", "default"):  # its own packets would be counted
                run("ip", "netns", "exec", netns, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")

    def test_delay_is_exact(self):
        self.attempts(lambda: self.check_delay(10, 15, rate_mbit=100))

    def test_delay_holds_while_all_cpus_are_busy(self):
        busy = [subprocess.Popen(("sh", "-c", "while :; do :; done")) for _ in range(os.cpu_count())]
        try:
            self.attempts(lambda: self.check_delay(10, 10))
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def check_delay(self, ab, ba, **params):
        """Round trips with delays of `delays` ms in each direction. The machine's own delay is measured by round trips
        without delays."""
        with Linkemu({}, params) as emu:
            without = statistics.median(ping(50).values())
            emu.set("ab", delay_ms=ab)
            emu.set("ba", delay_ms=ba)
            times = list(ping(100).values())
        self.assertEqual(len(times), 100)
        self.assertGreaterEqual(min(times), ab + ba)
        error, worst = (value - ab - ba - without for value in (statistics.median(times), max(times)))
        text = (f"round-trip time beyond the set {ab + ba} ms and the {without:.3f} ms without: "
                f"median {error:.3f} ms, worst {worst:.3f} ms")
        print("\n" + text)
        self.in_time(error < 0.3, text)

    def test_drops_exactly_these(self):
        with Linkemu({"drop": [3, 5]}, {"drop": [1]}) as emu:
            self.assertEqual(sorted(ping(8)), [2, 4, 6, 7, 8])
            self.assertEqual(emu.stats("ab")["dropped"]["exact"], 2)
            self.assertEqual(emu.stats("ab")["in"]["packets"], 8)
            self.assertEqual(emu.stats("ba")["dropped"]["exact"], 1)
            emu.set("ab", drop=[3, 5])  # setting the same list restarts the count
            self.assertEqual(sorted(ping(6)), [1, 2, 4, 6])

    def test_throughput(self):
        self.attempts(self.check_throughput)

    def check_throughput(self):
        with Linkemu() as emu:
            mbit = self.iperf("-t", "3")
            user, system = emu.cpu_seconds()
            packets = emu.stats("ab")["delivered"]["packets"] + emu.stats("ba")["delivered"]["packets"]
            cpu = user + system
            text = (f"{mbit:.0f} Mbit/s; {packets / cpu:.0f} packets per CPU second; "
                    f"{user / packets * 1e6:.2f} us user + {system / packets * 1e6:.2f} us system per packet")
            print("\n" + text)
            self.in_time(mbit > 300, text)

    def test_rate(self):
        self.attempts(self.check_rate)

    def check_rate(self):
        with Linkemu({"rate_mbit": 20, "delay_ms": 5}, {"delay_ms": 5}) as emu:
            # 1448 of the 1500 bytes of an IP packet are TCP payload.
            mbit, wanted = self.iperf("-t", "3", "-O", "1"), 20 * 1448 / 1500
            self.assertGreater(emu.stats("ab")["queue_bytes_max"], 20_000)
            self.assertLessEqual(emu.stats("ab")["queue_bytes_max"], 250_000)
            self.in_time(abs(mbit - wanted) <= 0.8, f"{mbit:.2f} Mbit/s instead of {wanted:.2f}")

    def test_ecn_marks_instead_of_losses(self):
        self.attempts(self.check_ecn)

    def check_ecn(self):
        for netns in (A, B):
            run("ip", "netns", "exec", netns, "sysctl", "-qw", "net.ipv4.tcp_ecn=1")
        with Linkemu({"rate_mbit": 20, "delay_ms": 5, "ecn_threshold_bytes": 30_000}, {"delay_ms": 5}) as emu:
            mbit = self.iperf("-t", "3", "-O", "1", "-C", "reno")
            stats = emu.stats("ab")
            self.assertGreater(stats["marked"], 3)
            self.assertEqual(stats["dropped"]["queue"], 0)
            self.in_time(mbit > 15, f"{mbit:.1f} of 20 Mbit/s")

    def about(self, wanted):
        """The median of ten round-trip times is what it should be, in ms."""
        def measure():
            median = statistics.median(ping(10).values())
            self.in_time(abs(median - wanted) <= 1, f"a median of {median} ms instead of {wanted}")

        self.attempts(measure)

    def test_live_change(self):
        with Linkemu({"delay_ms": 5}, {"delay_ms": 5}) as emu:
            self.about(10)
            emu.set("ba", delay_ms=25)
            self.about(30)
            emu.set("both", down=True)
            self.assertEqual(ping(3), {})
            self.assertEqual(emu.stats("ab")["dropped"]["down"], 3)
            emu.set("both", down=False)
            self.about(30)
            emu.set("ab", loss=1)
            self.assertEqual(ping(3), {})
            self.assertEqual(emu.stats("ab")["dropped"]["loss"], 3)

    def test_mtu_black_hole(self):
        with Linkemu({"mtu": 1400}):
            self.assertEqual(len(ping(3, "-s", str(1400 - 28))), 3)
            self.assertEqual(len(ping(3, "-s", str(1401 - 28))), 0)

    def test_bad_requests_change_nothing(self):
        with Linkemu({"delay_ms": 1}) as emu:
            for text in ("", "nonsense", "[]", "{}", '{"cmd":"fly"}', '{"cmd":"stats","x":1}', '{"cmd":"set"}',
                         '{"cmd":"set","link":"lte","direction":"ab","params":{}}',
                         '{"cmd":"set","link":"wifi","direction":"up","params":{}}',
                         '{"cmd":"set","link":"wifi","direction":"ab","params":{"delay_ms":9,"loss":2}}'):
                self.assertIn("error", emu.ask_text(text), text)
            self.about(1)

    def test_ends_cleanly(self):
        for end in (lambda emu: emu.ask(cmd="quit"),
                    lambda emu: emu.process.send_signal(signal.SIGINT),
                    lambda emu: emu.process.send_signal(signal.SIGTERM)):
            with Linkemu() as emu:
                answer = end(emu)
                self.assertIn(answer, (None, {"ok": True}))
                self.assertEqual(emu.process.wait(5), 0)
                self.assertFalse(os.path.exists(emu.socket_path))
                self.assertNotIn("wifi0", run("ip", "-n", A, "link"))
                self.assertNotIn("wifi0", run("ip", "-n", B, "link"))

    def test_bad_configurations(self):
        def link(**more):
            ends = {"a": {"netns": A, "device": "x0"}, "b": {"netns": B, "device": "x0"}}
            return {"links": [{"name": "wifi", **ends, **more}]}

        missing = {"netns": f"{PREFIX}-none", "device": "x0"}
        for config, status, named in ((link(ab={"rate": 1}), 2, ["wifi", "ab", "rate"]),
                                      (link(ba={"loss": 1.5}), 2, ["wifi", "ba", "loss"]),
                                      (link(a=missing), 1, [f"{PREFIX}-none"])):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(config, file)
                file.flush()
                done = subprocess.run([LINKEMU, file.name], capture_output=True, text=True, timeout=10)
            self.assertEqual(done.returncode, status, done.stderr)
            for word in named:
                self.assertIn(word, done.stderr)

    def iperf(self, *options):
        """Mbit/s received, from a to b."""
        server = subprocess.Popen(("ip", "netns", "exec", B, "iperf3", "-s", "-1", "--forceflush"),
                                  stdout=subprocess.PIPE, text=True)
        try:
            while "listening" not in server.stdout.readline():
                self.assertIsNone(server.poll())
            result = json.loads(in_a("iperf3", "-J", "-c", ADDRESS_B, *options))
            return result["end"]["sum_received"]["bits_per_second"] / 1e6
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
