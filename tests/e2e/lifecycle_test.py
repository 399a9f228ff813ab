"""Reload, restart and end of the daemons under traffic."""

import signal
import time
import unittest

from pair_case import V4, V6, PairCase

STALL_LIMIT = IDLE_LIMIT = 1.2  # seconds; the target shield.6 measures both
SETTLED = 3  # seconds: a gateway writes down who is here at most every 2 s


class Lifecycle(PairCase):
    def setUp(self):
        for gateway in self.lab.gateways():
            if gateway.process is None or gateway.process.poll() is not None:
                gateway.start()
        self.lab.edge_gateway.wait_up(subflows=2)

    def test_reload_under_traffic(self):
        self.attempts(self.reload_under_traffic)

    def reload_under_traffic(self):
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        pids = [gateway.process.pid for gateway in self.lab.gateways()]
        for gateway in self.lab.gateways():
            gateway.reload()
        at = download.elapsed()
        self.verify(download)
        self.assertEqual([gateway.process.pid for gateway in self.lab.gateways()], pids)
        self.assertTrue(all(gateway.process.poll() is None for gateway in self.lab.gateways()))
        stall = download.longest_stall(begin=at)
        self.in_time(stall < 0.5, f"a reload, and the download stood still for {stall:.2f} s")

    def test_reload_takes_an_uplink_away_and_gives_it_back(self):
        gateway = self.lab.edge_gateway
        uplinks = gateway.config["uplinks"]
        self.addCleanup(gateway.config.update, uplinks=uplinks)
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        gateway.config["uplinks"] = uplinks[:1]
        gateway.reload()
        gateway.wait_path("lte", "closed")
        gateway.config["uplinks"] = uplinks
        gateway.reload()
        gateway.wait_path("lte", "active")
        self.verify(download)

    def test_reload_of_a_broken_file_changes_nothing(self):
        gateway = self.lab.edge_gateway
        gateway.path.write_text("peers: [\n", encoding="ascii")
        gateway.process.send_signal(signal.SIGHUP)
        self.lab.wait_for_line(gateway.name, "the old configuration stays")
        self.assertIsNone(gateway.process.poll())
        self.verify(self.download(self.file(2_000_000)))
        gateway.reload()

    def test_restart_of_either_daemon_under_traffic(self):
        for gateway in self.lab.gateways():
            for number in (signal.SIGTERM, signal.SIGKILL):
                with self.subTest(gateway=gateway.name, signal=number):
                    download = self.download(self.file(12_000_000))
                    download.wait_for_size(3_000_000)
                    gateway.restart(number)
                    self.verify(download)

    def test_a_killed_daemon_is_back_before_the_download_notices_much(self):
        self.kill_each(self.stall_of_a_kill, STALL_LIMIT, "the download stood still")

    def test_a_silent_edge_is_reached_soon_after_a_daemon_was_killed(self):
        self.kill_each(self.gap_of_a_kill, IDLE_LIMIT, "the edge was not reached")

    def kill_each(self, measure, limit, what):
        """Each daemon in turn is killed while all is well; `measure` gives the seconds that something takes then."""
        def attempt():
            self.lab.edge_gateway.wait_up(subflows=2)
            time.sleep(SETTLED)
            seconds = measure(gateway)
            self.in_time(seconds < limit, f"{gateway.name} was killed, and {what} for {seconds:.2f} s")

        for gateway in self.lab.gateways():
            with self.subTest(gateway=gateway.name):
                self.attempts(attempt)

    def stall_of_a_kill(self, gateway):
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        at = download.elapsed()
        gateway.kill_and_supervise()
        self.verify(download)
        return download.longest_stall(begin=at)

    def gap_of_a_kill(self, gateway):
        begun = time.monotonic()
        gateway.kill_and_supervise()
        client = self.lab.sites[0].client_address[0]
        while self.ping(client, count=1, namespace=self.lab.server, wait=0.2) == 0 and time.monotonic() - begun < 20:
            pass
        return time.monotonic() - begun

    def test_what_others_take_away_comes_back(self):
        edge = self.lab.edge

        def configured():
            return [edge.run("ip", "-br", "link", "show", "braid0").split()[1:],
                    edge.run("ip", "-o", "address", "show", "dev", "braid0", "scope", "global"),
                    edge.run("ip", "route", "show", "proto", "66"),
                    sorted(edge.run("ip", "-6", "route", "show", "proto", "66").splitlines())]

        before = configured()
        for change in ("address flush dev braid0", "link set braid0 down", "route flush proto 66",
                       "-6 route flush proto 66"):
            with self.subTest(change):
                edge.run("ip", *change.split())
                self.eventually(lambda: configured() == before, f"all is as it was before 'ip {change}'")
                self.assertGreaterEqual(self.ping(V4), 4)
                self.assertGreaterEqual(self.ping(V6), 4)
        self.lab.wait_for_line(self.lab.edge_gateway.name, "was gone from the host, and is put back")

    def test_clean_end(self):
        gateway = self.lab.edge_gateway
        self.assertEqual(gateway.stop(), 0)
        self.assertNotIn("braid0", self.lab.edge.run("ip", "-br", "link"))
        self.assertEqual(self.lab.edge.run("ip", "rule").count("\n"), 3, "the daemon's routing rules are gone")
        gateway.start()
        gateway.wait_up(subflows=2)
        self.assertGreaterEqual(self.ping(V4), 4)


if __name__ == "__main__":
    unittest.main()
