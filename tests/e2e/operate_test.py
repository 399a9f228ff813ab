"""braidctl's commands for operators, on real gateways: their measurements and explanations must match the links."""

import json
import os
import pty
import select
import signal
import subprocess
import termios
import time
import unittest

from lab import Link
from lab.gateway import binary
from pair_case import PairCase

DSL, LTE = 40, 20  # Mbit/s


class Operate(PairCase):
    LINKS = [Link("dsl", DSL, 20), Link("lte", LTE, 50)]

    def edge(self, *words):
        return self.lab.edge_gateway.ctl(*words)

    def measured(self, *words):
        """{path: run} of braidctl test; the path None means all paths."""
        out = subprocess.run(self.lab.edge.words(binary("braidctl"), "test", "--json", *words, "--socket",
                                                 self.lab.edge_gateway.socket),
                             stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
        return {run["path"]: run for run in json.loads(out)["runs"]}

    def test_measures_what_the_links_carry(self):
        runs = self.measured("--seconds", "3")
        self.assertEqual(set(runs), {"dsl", "lte", None})
        for path, rate, rtt in (("dsl", DSL, 20), ("lte", LTE, 50)):
            with self.subTest(path):
                self.assertGreater(runs[path]["bytes_per_s"] * 8 / 1e6, 0.7 * rate)
                self.assertLess(runs[path]["bytes_per_s"] * 8 / 1e6, 1.05 * rate)
                self.assertLess(abs(runs[path]["idle_rtt_ms"] - rtt), 0.3 * rtt)
                self.assertGreaterEqual(runs[path]["loaded_rtt_ms"], runs[path]["idle_rtt_ms"])
        self.assertGreater(runs[None]["bytes_per_s"] * 8 / 1e6, 0.7 * (DSL + LTE))

    def test_measures_a_path_that_is_named(self):
        self.assertEqual(set(self.measured("--seconds", "1", "--path", "lte")), {"lte"})

    def test_an_interrupt_ends_the_test_in_the_daemon(self):
        process = self.lab.start(self.lab.edge, "test", [binary("braidctl"), "test", "--seconds", "60", "--socket",
                                                         self.lab.edge_gateway.socket])
        time.sleep(1.5)
        self.lab.stop(process, signal.SIGINT)
        before = self.sent()
        time.sleep(1)
        self.assertLess(self.sent() - before, 100_000)

    def sent(self):
        return sum(flow["sent_bytes"] for flow in self.lab.edge_gateway.paths())

    def test_explains_a_path_that_fell_silent(self):
        process = self.lab.start(self.lab.edge, "load", [binary("braidctl"), "test", "--seconds", "25", "--path",
                                                         "dsl", "--socket", self.lab.edge_gateway.socket])
        self.addCleanup(self.lab.stop, process, signal.SIGINT)
        time.sleep(12)  # a step of the history, in which the path carries something
        self.lab.links.set("dsl", down=True)
        self.lab.edge_gateway.wait_path("dsl", "suspect")
        time.sleep(1)
        self.lab.links.set("dsl", down=False)
        self.lab.edge_gateway.wait_path("dsl", "active")
        told = json.loads(self.edge("explain", "--json"))
        dsl = next(path for path in told["paths"] if path["path"] == "dsl")
        silent = [trouble for trouble in dsl["troubles"] if trouble["kind"] == "silent"]
        self.assertGreaterEqual(len(silent), 1)
        self.assertTrue(silent[-1]["stall_avoided"])
        self.assertGreater(silent[-1]["to_unix_s"] - silent[-1]["from_unix_s"], 0.5)
        self.assertGreaterEqual(told["sums"]["paths_came_back"], 1)
        text = self.edge("explain", "--since", "5m")
        self.assertIn("concentrator by dsl: bad", text)
        self.assertIn("a stall avoided", text)

    def test_doctor_finds_nothing_wrong(self):
        time.sleep(11)  # after the start; another test may have waited
        for gateway in self.lab.gateways():
            done = subprocess.run(gateway.namespace.words(binary("braidctl"), "doctor", gateway.path),
                                  stdout=subprocess.PIPE, text=True, check=False, timeout=40)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_top_shows_paths_once(self):
        text = self.edge("top")
        for word in ("dsl", "lte", "REPAIRED", "active"):
            self.assertIn(word, text)
        self.assertNotIn("\x1b", text)

    def test_top_lives_in_a_terminal_and_gives_it_back(self):
        for end in ("q", signal.SIGTERM, signal.SIGINT):
            with self.subTest(end):
                near, far = pty.openpty()
                before = termios.tcgetattr(far)
                process = subprocess.Popen(self.lab.edge.words(binary("braidctl"), "top", "--socket",
                                                               self.lab.edge_gateway.socket),
                                           stdin=far, stdout=far, stderr=far, start_new_session=True)
                shown = self.read(near, 1.5)
                self.assertIn("REPAIRED", shown)
                self.assertIn("\x1b[?1049h", shown)
                self.assertEqual(termios.tcgetattr(far)[3] & (termios.ICANON | termios.ECHO), 0)
                os.write(near, b"p")
                self.assertIn("STREAMS", self.read(near, 1))
                if end == "q":
                    os.write(near, b"q")
                else:
                    os.killpg(process.pid, end)
                last = self.read(near, 1)
                self.assertEqual(process.wait(5), 0)
                self.assertIn("\x1b[?1049l", last)
                self.assertIn("\x1b[?25h", last)
                self.assertEqual(termios.tcgetattr(far), before)
                os.close(near)
                os.close(far)

    @staticmethod
    def read(terminal, seconds):
        out, deadline = b"", time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                out += os.read(terminal, 65536)
        return out.decode(errors="replace")


if __name__ == "__main__":
    unittest.main()
