"""The wall clock of a gateway is set by an hour, forwards and back, while it carries traffic. The daemons alone see
that (wall_clock.cc), so the host's clock stays."""

import contextlib
import datetime
import pathlib
import re
import shlex
import struct
import time
import unittest

from join_case import JoinCase
from lab import binary, longest_gap
from lab.measure import Echoes
from pair_case import V4, PairCase

HOUR = 3600
STALL_LIMIT = 0.5  # seconds: a few round trips and repairs
EVENING = datetime.datetime(2026, 10, 31, 23, 20, tzinfo=datetime.timezone.utc)  # the last of a month
METER_TICK = 15  # seconds: the daemon looks at the wall clock every 10 s
# In a virtual machine a clock set forward may be the sign of a resumed snapshot (resume_test.py).
NO_VIRTUAL_MACHINE = ["unshare", "--mount", "sh", "-c",
                      "grep -v ^flags /proc/cpuinfo >\"$0\"; mount --bind \"$0\" /proc/cpuinfo; exec \"$@\""]
STREAMS = {"streams": {"enabled": "on", "match": [{"ports": 80}]}}


class WallClock:
    """That of one daemon, in a file that the daemon maps."""

    def __init__(self, path, now=None):
        self._path, self._ahead = path, 0
        self._write(int(now.timestamp() - time.time()) if now else 0)

    def words(self):
        """Before the command line of the daemon."""
        library = pathlib.Path(binary("braidd")).parent / "libwall_clock.so"
        return [*NO_VIRTUAL_MACHINE, f"{self._path}.cpuinfo", "env", "TZ=UTC", f"LD_PRELOAD={library}",
                f"BRAID_WALL_CLOCK={self._path}"]

    def _write(self, ahead):
        self._ahead = ahead
        with open(self._path, "r+b" if self._path.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead))

    def step(self, seconds):
        self._write(self._ahead + seconds)

    def now(self):
        return datetime.datetime.fromtimestamp(time.time() + self._ahead, datetime.timezone.utc)


class Stepped(PairCase):
    EDGE = CONCENTRATOR = STREAMS
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways(edge=STREAMS, concentrator=STREAMS)
        cls.lab.edge_gateway.config["uplinks"][0].update(use="normal", metered={"cap": "10GB"})

    def setUp(self):
        self.edge, self.hub = self.lab.edge_gateway, self.lab.gateway
        self.clocks = {}
        for gateway in (self.hub, self.edge):
            clock = self.clocks[gateway.name] = WallClock(self.lab.directory / f"{gateway.name}.clock", EVENING)
            gateway.wrapper = clock.words()
            gateway.start()
        self.edge.wait_up(subflows=2)
        for gateway in (self.hub, self.edge):
            self.eventually(lambda gateway=gateway: gateway.status()["streams"]["intercepting"], "streams")

    def tearDown(self):
        for gateway in (self.edge, self.hub):
            if gateway.process:
                gateway.stop()
            pathlib.Path(gateway.config["state"]).unlink(missing_ok=True)

    def step(self, seconds, *gateways):
        for gateway in gateways or (self.hub, self.edge):
            self.clocks[gateway.name].step(seconds)

    def sessions(self):
        """What tells one session from the next, at both gateways: when each began, and its keys."""
        now = time.monotonic()
        return [(now - peer["age_s"], peer["key_generation"])
                for gateway in (self.hub, self.edge) for peer in gateway.status()["peers"]]

    def uplink(self):
        """The first one, which is metered by the month."""
        return self.edge.status()["gateway"]["uplinks"][0]

    def counts(self):
        """Its bytes of today, of this month, of its meter's period, which is a month, too."""
        uplink = self.uplink()
        return [uplink["carried"]["today_bytes"], uplink["carried"]["month_bytes"], uplink["metered"]["used_bytes"]]

    def period_ends(self):
        return datetime.datetime.fromtimestamp(self.uplink()["metered"]["until_unix_s"], datetime.timezone.utc)

    def test_neither_sessions_nor_streams_notice(self):
        self.attempts(self.steps_under_traffic)

    def steps_under_traffic(self):
        before = self.sessions()
        download = self.download(self.file(50_000_000))
        echoes = Echoes(self.lab, self.lab.client, V4)
        download.wait_for_size(3_000_000)
        self.assertGreater(self.edge.status()["streams"]["open"], 0)
        begun, at = time.time(), download.elapsed()
        for seconds, gateways in ((HOUR, ()), (-HOUR, ()), (-HOUR, [self.edge]), (HOUR, [self.hub]), (-HOUR, ())):
            self.step(seconds, *gateways)
            time.sleep(0.8)
        ended = time.time()
        self.assertTrue(download.is_alive(), "the download was too short for the steps")
        stall = download.longest_stall(begin=at)
        gap = longest_gap([begun, *(at for at in echoes.stop() if begun < at < ended), ended])
        self.verify(download)
        for (begin, keys), (was_begin, was_keys) in zip(self.sessions(), before):
            self.assertAlmostEqual(begin, was_begin, delta=1)
            self.assertEqual(keys, was_keys)
        self.in_time(stall < STALL_LIMIT, f"the stream stood still for {stall:.2f} s")
        self.in_time(gap < STALL_LIMIT, f"no echo came for {gap:.2f} s")

    def test_a_session_begins_while_a_clock_is_set_back(self):
        """The hello of the edge is under way at that moment."""
        self.hub.stop()
        self.edge.restart()
        time.sleep(1)
        self.step(-HOUR, self.edge)
        self.hub.start()
        self.edge.wait_up(subflows=2, timeout=5)

    def test_a_day_and_a_month_begin_once(self):
        self.verify(self.download(self.file(3_000_000)))
        before = self.counts()
        self.assertGreater(min(before), 100_000)
        self.assertEqual(self.period_ends(), datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc))
        self.step(-HOUR)
        time.sleep(METER_TICK)
        self.assertTrue(all(now >= then for now, then in zip(self.counts(), before)), "a clock set back begins nothing")
        self.step(2 * HOUR)  # it is the first of November, 0:20
        self.eventually(lambda: max(self.counts()) < 100_000, "a new day and a new month", METER_TICK)
        self.assertEqual(self.period_ends(), datetime.datetime(2026, 12, 1, tzinfo=datetime.timezone.utc))
        self.verify(self.download(self.file(3_000_000)))
        fresh = self.counts()
        self.assertGreater(min(fresh), 100_000)
        self.step(-HOUR)  # it is October again
        time.sleep(METER_TICK)
        self.assertTrue(all(now >= then for now, then in zip(self.counts(), fresh)), "nothing begins a second time")
        self.assertEqual(self.period_ends(), datetime.datetime(2026, 12, 1, tzinfo=datetime.timezone.utc))
        self.step(HOUR)
        time.sleep(METER_TICK)
        self.assertTrue(all(now >= then for now, then in zip(self.counts(), fresh)), "nor does November")
        self.edge.restart()
        self.edge.wait_up()
        self.assertTrue(all(now >= then for now, then in zip(self.counts(), fresh)), "and the file has it")

    def test_the_log_and_events_have_the_time_of_the_clock(self):
        log = self.lab.log(self.edge.name)
        for seconds in (HOUR, -HOUR):
            self.step(seconds)
            size = len(log.read_text())
            self.edge.reload()
            self.eventually(lambda size=size: log.read_text()[size:].count("\n"), "a line about the reload")
            written = re.match(r"(\S+ \S+) \w+: ", log.read_text()[size:]).group(1)
            told = datetime.datetime.fromisoformat(written).replace(tzinfo=datetime.timezone.utc)
            self.assertLess(abs(told - self.clocks[self.edge.name].now()), datetime.timedelta(seconds=5))
            self.lab.edge.ip("link", "set", "wifi0", "down")
            self.eventually(lambda: "lost its uplink" in self.explained(10), "an event, by the daemon's clock")
            self.lab.restore_uplink(0)
            self.edge.wait_path("wifi", "active")

    def explained(self, seconds):
        """What braidctl tells of the last seconds, by the clock of the daemon's machine."""
        return self.lab.edge.run(*self.edge.wrapper, binary("braidctl"), "explain", "--since", f"{seconds}s",
                                 "--socket", self.edge.socket)


class Invitations(JoinCase):
    """The clock of a concentrator is set while somebody is invited."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.clock = WallClock(cls.lab.directory / "hub.clock")
        cls.hub.starts(True, braidd=shlex.join([*cls.clock.words(), binary("braidd")]))
        cls.restart_hub()

    @classmethod
    def restart_hub(cls):
        for words in (["disable", "--now"], ["enable", "--now"]):
            cls.hub.call("systemctl", *words, "braid@concentrator")

    def peers(self):
        return self.hub.files("/var/lib/braid/concentrator.peers.d")

    def is_up(self):
        return self.edge.call("ping", "-c", "1", "-W", "1", "10.99.0.1").returncode == 0

    def test_an_invitation_expires_by_the_clock_and_is_good_again_when_that_was_wrong(self):
        line = self.invite("van", "--valid-for", "30min")
        self.clock.step(HOUR)
        undo = contextlib.ExitStack()
        self.addCleanup(undo.close)
        undo.callback(self.clock.step, -HOUR)
        told = self.refused(line)
        self.assertIn("expired", told)
        self.assertIn("if the concentrator's clock ('date -u') differs, set it", told)
        undo.close()
        self.assertIn("joined as 'van'", self.join(line))

    def test_who_has_joined_stays(self):
        self.join(self.invite("van", "--valid-for", "30min"))
        for seconds in (HOUR, -2 * HOUR, HOUR):
            self.clock.step(seconds)
            time.sleep(2)
            self.assertEqual(self.peers(), ["van.yaml"])
            self.assertTrue(self.is_up())
            self.restart_hub()
            self.eventually(self.is_up, "the edge is up again", 15)
            self.assertEqual(self.peers(), ["van.yaml"])


if __name__ == "__main__":
    unittest.main()
