"""Evaluation of runs by the targets. A failure fails a target: a stall, reset or crash must not end as "not measured".
A value of one seed is reported with those of others."""

import asyncio
import collections
import contextlib
import io
import json
import math
import os
import shutil
import signal
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

from lab import ends
from lab.datagrams import DRAIN
from lab.faults import FaultLab
from targets import (MISSING, REGISTRY, Target, __main__, _page_tour, _simulate, _stand_in, _strangers, _syn_flood,
                     aid, aid_incast, aid_openings, always, at_least, eval_ns3, eval_shim, guard, guard_attacks,
                     guard_fuzz, guard_rights, house, operate_packages, option, order, order_shim, rate, recovery,
                     router, see_packages, shield, shield_protocol, shield_streams, shim, shim_racks, speed, speed_load,
                     transport, transport_delay, transport_together)
from targets import _recovery_lab as lab
from targets import eval as eval_claims
from targets._flows import Completion

FAILURES = [TimeoutError("timed out"), ConnectionResetError("reset by peer"), RuntimeError("a tool died"),
            ValueError("wrong bytes"), subprocess.TimeoutExpired("ip", 30), ZeroDivisionError("nothing came")]


def raising(error):
    return mock.Mock(side_effect=error)


class Silent(unittest.TestCase):
    """Hides tracebacks of intended failures."""

    def setUp(self):
        silence = contextlib.redirect_stderr(io.StringIO())
        silence.__enter__()
        self.addCleanup(silence.__exit__, None, None, None)


class Situations(unittest.TestCase):
    ROW = "  - {kind: 4, situation: %s, program: ufw, family: IPv4, %s}\n"

    def value(self, *rows, good=True):
        text = "situations:\n" + "".join(self.ROW % (f"s{i}", row) for i, row in enumerate(rows))
        run = mock.Mock(return_value=good)
        return (*router.situations_value(router.read(text), run), run)

    def test_what_is_open_or_fails_counts(self):
        value, detail, run = self.value("test: a_test.py A.b", "test: a_test.py A.b", "open: a_test.py A.c", good=False)
        self.assertEqual(value, 3)
        self.assertEqual(detail["kinds"], {4: {"situations": 3, "open": 1, "failed": 2}})
        run.assert_called_once_with("a_test.py", "A.b")
        self.assertIn("3 of at least 60", detail[MISSING])

    def test_what_is_covered_does_not(self):
        value, detail, _ = self.value(*["test: a_test.py A.b"] * router.LEAST)
        self.assertEqual(value, 0)
        self.assertNotIn(MISSING, detail)

    def test_a_test_of_a_program_must_have_run(self):
        rows = [{"test": "a_test.py A.b"}, {"test": "unit_a A.B"}, {"open": "sim_a A.B"}]
        self.assertEqual(router.test_programs(rows), ["unit_a"])
        for code, text, good in ((0, "[  PASSED  ] 4 tests.", True), (0, "[  PASSED  ] 0 tests.", False),
                                 (1, "[  PASSED  ] 3 tests.", False),
                                 (0, "[  SKIPPED ] A.B\n[  PASSED  ] 1 test.", False)):
            done = mock.Mock(returncode=code, stdout=text)
            with mock.patch.object(router.subprocess, "run", return_value=done), \
                    contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(router.passes_in("unit_a", "A.B"), good, text)

    def test_a_situation_is_whole(self):
        for state in ("test: a, open: b", "kind: 4", "until: b"):
            with self.assertRaises(ValueError, msg=state):
                self.value(state)

    def test_the_table(self):
        rows = router.read(router.TABLE.read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(rows), router.LEAST)
        programs = router.test_programs(rows)
        sources = "".join(path.read_text(encoding="utf-8") for folder in ("unit", "sim")
                          for path in (router.ROOT / "tests" / folder).rglob("*_test.cc"))
        for test in {row["test"] for row in rows if "test" in row}:
            file, name = test.split()
            group, _, case = name.partition(".")
            if file in programs:
                self.assertRegex(sources, rf"\bTEST(_[FP])?\({group}, {case}\)", test)
                continue
            text = (router.ROOT / "tests/e2e" / file).read_text(encoding="utf-8")
            self.assertIn(f"class {group}(", text, test)
            self.assertIn(f"def {case}(", text, test)


class Neighbours(unittest.TestCase):
    def value(self, *results):
        return router.neighbours_value({"squid": object}, 3, mock.Mock(side_effect=results))

    def test_each_break_counts(self):
        value, detail = self.value(([{"name": "a"}, {"name": "b"}], 4, 0, []), ([], 4, 100, ["0x1"]))
        self.assertEqual(value, 2)
        self.assertEqual([each["neighbour"] for each in detail["broken"]], ["squid, when-down: not set"] * 2)
        self.assertNotIn(MISSING, detail)

    def test_connections_that_were_not_looked_at_prove_nothing(self):
        for made, answers in ((0, 0), (4, 3)):
            value, detail = self.value(([], 4, 100, []), ([], made, answers, []))
            self.assertEqual(value, 0)
            self.assertIn("squid, when-down: block: nothing was looked at", detail[MISSING])


class Verdict(Silent):
    OPTIONS = [option("--quick", action="store_true"), option("--settings", default="{}"),
               option("--runs", at_least(3), type=int, default=3), option("--show", always, action="store_true")]

    def run_target(self, measure, words=(), options=()):
        """(exit code, JSON object) of the program with one target, which 1 meets."""
        targets = {"x.1": Target("x.1", "it", "s", measure, None, 1, [], list(options))}
        said = io.StringIO()
        with mock.patch.object(__main__, "load", lambda: targets), \
                mock.patch.object(sys, "argv", ["target", "x.1", *words]), \
                contextlib.redirect_stdout(said):
            code = __main__.main()
        return code, json.loads(said.getvalue().splitlines()[-1])

    def test_a_value_within_the_bound_passes(self):
        code, said = self.run_target(lambda: (0.5, {}))
        self.assertEqual((code, said["value"], said["pass"]), (0, 0.5, True))

    def test_what_breaks_a_measurement_is_told_and_does_not_pass(self):
        for error in FAILURES:
            with self.subTest(error=error):
                code, said = self.run_target(raising(error))
                self.assertEqual((code, said["value"], said["pass"]), (1, None, False))
                self.assertIn(type(error).__name__, said["detail"][MISSING])

    def test_what_is_missing_does_not_pass(self):
        code, said = self.run_target(lambda: (0.5, {MISSING: "a part"}))
        self.assertEqual((code, said["value"], said["pass"]), (1, 0.5, False))

    def test_another_value_of_an_option_is_a_look_and_does_not_pass(self):
        for words, passes in (([], True), (["--show"], True), (["--runs", "4"], True), (["--settings", "{}"], True),
                              (["--quick"], False), (["--runs", "2"], False), (["--settings", '{"a": 1}'], False)):
            with self.subTest(words):
                code, said = self.run_target(lambda **_: (0.5, {}), words, self.OPTIONS)
                self.assertEqual((code == 0, said["pass"]), (passes, passes))
                self.assertEqual(MISSING in said["detail"], not passes)

    def test_what_else_is_missing_stays(self):
        for lacking in ("a part", ["a part", "another"]):
            _, said = self.run_target(lambda quick, **_: (0.5, {MISSING: lacking}), ["--quick"], self.OPTIONS)
            self.assertIn("a part", said["detail"][MISSING])
            self.assertIn("--quick", said["detail"][MISSING])


class BesideTheLab(Silent):
    def beside(self, measure, user=0):
        with mock.patch("os.geteuid", lambda: user):
            return lab.beside(0.5, {"flows": 3}, measure, "all", rounds=2)

    def test_what_the_lab_finds_is_a_detail(self):
        measure = mock.Mock(return_value={"p99": 1})
        value, detail = self.beside(measure)
        measure.assert_called_once_with("all", rounds=2)
        self.assertEqual((value, detail["flows"], detail["lab"]["p99"]), (0.5, 3, 1))
        self.assertNotIn(MISSING, detail)

    def test_what_fails_in_the_lab_fails_the_target(self):
        for error in FAILURES:
            with self.subTest(error=error):
                value, detail = self.beside(raising(error))
                self.assertIsNone(value)
                self.assertIn(str(error), detail[MISSING])
                self.assertEqual((detail["flows"], detail["in virtual time"]), (3, 0.5))

    def test_where_there_can_be_no_lab_the_rest_counts(self):
        measure = mock.Mock()
        value, detail = self.beside(measure, user=1000)
        measure.assert_not_called()
        self.assertEqual(value, 0.5)
        self.assertIn("need root", detail["lab"])


class Fetches(unittest.TestCase):
    """The times of a visitor whose fetches were these (begin, duration), while the machine stood still at `pauses`."""

    def times(self, fetches, pauses=()):
        with contextlib.closing(lab.Stalls()) as stalls:
            stalls.close()
            stalls._stalls[:] = [(begin, end + lab.Stalls.AFTER) for begin, end in pauses]
            client = types.SimpleNamespace(inside=lambda fetch: fetches)
            visitor = lab.Visitor(types.SimpleNamespace(client=client), "/file", b"", stalls)
            return visitor.series([1] * len(fetches)), stalls.left_out

    def test_all_are_kept_while_nothing_is_wrong(self):
        self.assertEqual(self.times([(0, 0.1), (1, 0.2)]), ([0.1, 0.2], 0))

    def test_what_the_machine_delayed_is_left_out(self):
        self.assertEqual(self.times([(0, 0.1), (1, 7)], pauses=[(2, 7)]), ([0.1], 1))

    def test_one_that_stalls_is_a_failure(self):
        with self.assertRaises(TimeoutError):
            self.times([(0, 0.1), (1, lab.STALL)])

    def test_a_short_pause_of_the_machine_is_no_excuse_for_a_long_stall(self):
        with self.assertRaises(TimeoutError):
            self.times([(0, lab.STALL + 1)], pauses=[(1, 1.05)])

    def test_a_failure_tells_whose_it_is(self):
        for error in FAILURES:
            site = types.SimpleNamespace(number=0)
            visitor = types.SimpleNamespace(site=site, series=raising(error))
            responses = lab._Responses(types.SimpleNamespace(visitors=[visitor]))
            with self.subTest(error=error), self.assertRaisesRegex(RuntimeError, "cofuso, round 3: "):
                responses.round("cofuso", 3)
            self.assertEqual(responses.times, {})


class Downloads(unittest.TestCase):
    @staticmethod
    def check(arrivals, elapsed, alive=True):
        times = [at for at, _ in arrivals]
        longest = max((b - a for a, b in zip(times, times[1:])), default=0.0)
        lab.require_flowing(types.SimpleNamespace(
            is_alive=lambda: alive, elapsed=lambda: elapsed, longest_stall=lambda: longest, arrivals=arrivals,
            size=arrivals[-1][1] if arrivals else 0, error="curl ended with 18"))

    def test_one_that_flows(self):
        self.check([(0.1, 10), (1, 20), (2, 30)], 2.1)

    def test_one_that_ended_early(self):
        with self.assertRaisesRegex(RuntimeError, "curl ended with 18"):
            self.check([(0.1, 10), (1, 20)], 1.1, alive=False)

    def test_one_that_brings_nothing_or_nothing_more_or_paused(self):
        for arrivals in ([], [(0.1, 10)], [(0.1, 10), (lab.STALL + 0.2, 20)]):
            with self.subTest(arrivals=arrivals), self.assertRaises(TimeoutError):
                self.check(arrivals, lab.STALL + 0.3)


class Daemons(unittest.TestCase):
    def test_one_that_does_not_end_well_is_a_failure(self):
        ends = [0, -11]
        gateways = [mock.Mock(config={}, **{"stop.return_value": code}) for code in ends]
        fleet = lab.Fleet.__new__(lab.Fleet)
        fleet.lab = mock.Mock(sites=[], **{"gateways.return_value": gateways, "log_tail.return_value": "the end"})
        with self.assertRaisesRegex(RuntimeError, "-11"):
            fleet.restart("fuso")
        for gateway in gateways:
            gateway.start.assert_not_called()


class LossyHop(unittest.TestCase):
    """shim.2 with a lab in which flows take 1, 2, ... ms, ten times as long without the shim; the first ones fail."""

    FLOWS = 3000  # three blocks of 1000

    def lossy_hop(self, failed):
        """`failed`: {shim on: flows of each block that fail}."""
        bench = mock.MagicMock()
        bench.__enter__.return_value = bench

        def run(size, count):
            if size != shim.JITTER_BYTES:
                return [], 0
            on = bench.lab.switch_ack_shim.call_args.args[0]
            unit = 0.001 if on else 0.01
            return [Completion(unit * i, unit * i) for i in range(1 + failed[on], count + 1)], failed[on]

        bench.run.side_effect = run
        with mock.patch.object(shim, "ShimLab", return_value=bench):
            return shim.lossy_hop(self.FLOWS, shim.SENDERS[:1])

    def test_without_failures(self):
        value, detail = self.lossy_hop({False: 0, True: 0})
        self.assertAlmostEqual(value, 0.9)
        self.assertEqual(detail["failed"], 0)
        self.assertNotIn(MISSING, detail)

    def test_a_flow_that_failed_is_among_the_longest(self):
        value, detail = self.lossy_hop({False: 0, True: 5})
        # Of 3000 flows 30 are the slowest percent, and 15 of these failed: 15 that did not are above the percentile.
        self.assertAlmostEqual(value, 1 - 0.995 / 9.9, places=3)
        self.assertEqual(detail["failed"], 30)
        self.assertIn("30 flows failed", detail[MISSING])
        json.dumps(detail, allow_nan=False)

    def test_too_many_that_failed_leave_no_value(self):
        for failed in ({False: 0, True: 11}, {False: 11, True: 0}):
            with self.subTest(failed=failed), self.assertRaisesRegex(RuntimeError, "flows failed"):
                self.lossy_hop(failed)


class LostSegments(unittest.TestCase):
    """shim.1 with a lab in which flows take 1 ms, and whose rule has dropped some `share` of what it should have."""

    @staticmethod
    def lost_segments(share):
        bench = mock.MagicMock()
        bench.__enter__.return_value = bench
        bench.run.return_value = [Completion(0.001, 0.001)] * shim.REPEATS, 0
        bench.lost_segments.side_effect = lambda: share * shim.REPEATS * len(bench.lose_segments.call_args.args[0])
        with mock.patch.object(shim, "ShimLab", return_value=bench):
            return shim.lost_segments()

    def test_all_were_lost(self):
        value, detail = self.lost_segments(1)
        self.assertAlmostEqual(value, 0.1)
        self.assertNotIn(MISSING, detail)

    def test_without_the_loss_there_is_no_verdict(self):
        _, detail = self.lost_segments(0)
        self.assertIn("down, the last 3 of 10, shim True: 0 segments were lost, not 45", detail[MISSING])


class Copies(unittest.TestCase):
    """The second half of order.4 with a lab in which only the host of this name sends a segment again."""

    @staticmethod
    def copies(host):
        before = {"Tcp.OutSegs": 0, "Tcp.RetransSegs": 5, "TcpExt.TCPDSACKOldSent": 0}
        bench = mock.MagicMock()
        bench.__enter__.return_value = bench
        bench.hosts = [mock.Mock(**{"counters.side_effect": [before, before | {
            "Tcp.OutSegs": 50, "Tcp.RetransSegs": 5 + (name == host)}]}) for name in ("server", "client")]
        bench.actuators.return_value = {"tail": {"fired": 2}}
        with mock.patch.multiple(order_shim, ShimLab=mock.Mock(return_value=bench), serve_answers=mock.DEFAULT,
                                 ask_persistently=mock.DEFAULT):
            return order_shim._copies(1, 10)[0]["share"]

    def test_of_either_host_count(self):
        self.assertEqual([self.copies(host) for host in ("nobody", "server", "client")], [0.02, 0.03, 0.03])


class Checks(unittest.TestCase):
    """aid.3: every check that fails counts, and all checks exist."""

    def test_what_fails_is_counted_and_named(self):
        value, detail = aid.checks_value({"a": ("f", ["x", "y"]), "b": ("f", ["z"])}, lambda _, name: name == "x")
        self.assertEqual((value, detail["checks"], detail["failed"]), (2, 3, {"a": ["y"], "b": ["z"]}))

    def test_a_check_that_is_gone_or_skipped_has_not_passed(self):
        for text, passed in (("Ran 1 test in 1s\n\nOK", True), ("Ran 0 tests in 0s\n\nOK", False),
                             ("Ran 1 test in 0s\n\nOK (skipped=1)", False)):
            done = mock.Mock(returncode=0, stdout=text)
            with mock.patch.object(aid.subprocess, "run", return_value=done), \
                    contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(aid.passes("a_test.py", "A.test_b"), passed)

    def test_all_are_in_their_files(self):
        for file, names in aid.CHECKS.values():
            text = (aid.E2E / file).read_text(encoding="utf-8")
            for name in names:
                case, method = name.split(".")
                self.assertIn(f"class {case}(", text)
                self.assertIn(f"def {method}(", text)


class Incast(unittest.TestCase):
    """aid.1: losses of the largest crowd, and no crowd is slower."""

    @staticmethod
    def runs(slow=1.0):
        before = aid_incast.BEFORE
        return {(senders, seed): {"lost": before[senders][0] / 20, "sent": 10**6, "incomplete": 0,
                                  "mean": before[senders][1] / 1e3 * (slow if senders == 40 else 0.9)}
                for senders in aid_incast.SENDERS for seed in aid_incast.SEEDS}

    def test_losses_of_the_largest_crowd_are_the_value(self):
        value, detail = aid_incast.incast_value(self.runs())
        self.assertAlmostEqual(value, 0.5)
        self.assertNotIn(MISSING, detail)

    def test_no_crowd_may_be_slower(self):
        self.assertIn("40 senders", aid_incast.incast_value(self.runs(1.01))[1][MISSING])


class Together(unittest.TestCase):
    """transport.3: the p99 of the pooled seeds against the best single method, the worst point without losses."""

    @staticmethod
    def value(clean=1.0, lossy=0.9):
        def seeds(of):  # one late response of a hundred in the first seed, three in the second
            return [{"times_small": [1e-3] * 99 + [of]}, {"times_small": [1e-3] * 97 + [of] * 3}]
        runs = {(*point, scheme): seeds(5e-3 if scheme == "fuso" else 9e-3)
                for point in transport_together.POINTS for scheme in transport_together.SINGLES}
        for point in transport_together.POINTS:
            share = lossy if point[0] else clean if point[1] else 0.5
            runs[*point, transport_together.ALL] = seeds(5e-3 * share)
        return transport_together.together_value(runs)

    def test_the_worst_point_without_losses_is_the_value(self):
        value, detail = self.value(clean=1.05)
        self.assertAlmostEqual(value, 1.05)
        self.assertEqual(detail["all / the best"]["lossy 0, incast 0"], 0.5)
        self.assertNotIn(MISSING, detail)

    def test_with_losses_it_may_not_be_behind(self):
        value, detail = self.value(lossy=1.01)
        self.assertAlmostEqual(value, 1.0)
        self.assertIn("lossy 0.05, incast 0: 1.010", detail[MISSING])


class Congested(unittest.TestCase):
    """transport.4: the worst crowd is the value, and the p99 at 4 % loss does not grow."""

    @staticmethod
    def value(slow=1.0, lossy=1.0, incomplete=0):
        runs = {(senders, policy): [{"mean": 0.02 * (slow if (senders, policy) == (44, "adaptive") else 1),
                                     "incomplete": incomplete}] * 2
                for senders in transport_together.SENDERS for policy in ("adaptive", "none")}
        p99 = transport_together.LOSSY_BEFORE / 1e3 * lossy
        return transport_together.congested_value(runs, [{"p99": p99, "incomplete": 0}] * 2)

    def test_the_worst_crowd_is_the_value(self):
        value, detail = self.value(slow=1.08)
        self.assertAlmostEqual(value, 1.08)
        self.assertNotIn(MISSING, detail)

    def test_random_losses_are_repaired_as_before(self):
        self.assertNotIn(MISSING, self.value(lossy=1.01)[1])
        self.assertIn("4 % loss", self.value(lossy=1.03)[1][MISSING])

    def test_every_flow_must_end(self):
        self.assertIn("flows did not end", self.value(incomplete=1)[1][MISSING])


class TwoWay(unittest.TestCase):
    """transport.2: the worst queue of all seeds and links, and what else is required."""

    @staticmethod
    def runs(goodput=0.95, share=0.5, forward=0.96, queue=50):
        link = {"p95_ms": 40}
        figures = {"both": {"links": dict.fromkeys(transport_delay.QUEUES, link), "down_share": 0.97, "up_share": 0.97},
                   "rival": {"share": 0.5}, "stranger": {"down_share": 0.97}}
        runs = {(load, seed): figures[load] for load in transport_delay.LOADS for seed in transport_delay.SEEDS}
        both = figures["both"]
        runs["both", 3] = both | {"up_share": goodput, "links": both["links"] | {"slow up": {"p95_ms": queue}}}
        runs["rival", 4], runs["stranger", 5] = {"share": share}, {"down_share": forward}
        return runs

    def test_the_worst_queue_is_the_value(self):
        value, detail = transport_delay.judge_two_way(self.runs())
        self.assertEqual(value, 50)
        self.assertNotIn(MISSING, detail)

    def test_each_bound_holds_for_the_worst_seed(self):
        for changed in ({"goodput": 0.89}, {"share": 0.34}, {"share": 0.61}, {"forward": 0.94}):
            self.assertIn(MISSING, transport_delay.judge_two_way(self.runs(**changed))[1], changed)


class OneWayCalls(unittest.TestCase):
    """order.2b: the worst variant counts, and every bound of it."""

    @staticmethod
    def rows(**worst):
        good = {"sent": 5000, "lost": 1, "above ms": 5.0, "kept": 1.0}
        return {"good": good, "worst": good | worst, "another": good}

    def missing(self, **worst):
        return order.one_way_value(self.rows(**worst))[1].get(MISSING)

    def test_the_worst_variant_is_the_value(self):
        value, detail = order.one_way_value(self.rows(lost=10))
        self.assertEqual((value, detail["worst variant"]), (0.002, "worst"))
        self.assertNotIn(MISSING, detail)

    def test_each_bound_holds_for_the_worst_variant(self):
        self.assertIn("p99 12.5 ms above idle", self.missing(**{"above ms": 12.5}))
        self.assertIn("4999 packets", self.missing(sent=4999))
        rows = {name: row | {"kept": 0.96} for name, row in self.rows().items()}
        self.assertIn("keeps 0.960", order.one_way_value(rows)[1][MISSING])

    def test_slow_calls_are_several(self):
        self.assertEqual([len(order.one_way_flows(rate, "::1")) for rate in (10, 50, 200)], [10, 2, 1])


class WhenIdle(unittest.TestCase):
    """Measurements under load are judged relative to those when idle."""

    @staticmethod
    def way(lost):
        return {"dns": {"answer": {"sent": 100, "lost": lost, "late": 0, "delays": [40.0] * (100 - lost)}}}

    def test_one_loss_is_none_of_the_p99(self):
        row = order.above_idle(self.way(1), self.way(0))["dns answer"]
        self.assertEqual((row["above ms"], row["lost when idle"]), (0, 1))

    def test_more_leave_nothing_to_judge_by(self):
        with self.assertRaisesRegex(RuntimeError, "2 of 100 lost when idle"):
            order.above_idle(self.way(2), self.way(0))
        self.assertEqual(order.above_idle(self.way(0), self.way(2))["dns answer"]["above ms"], DRAIN * 1e3 - 40)

    def test_pings_without_an_answer_when_idle(self):
        duel = mock.MagicMock(quick=False, seconds=1)
        duel.__enter__.return_value = duel
        with mock.patch.multiple(speed_load, Duel=mock.Mock(return_value=duel), datagrams=mock.DEFAULT,
                                 iperf3=mock.DEFAULT, _Pings=mock.DEFAULT,
                                 round_trips=lambda *_: [math.inf] * 11 + [1.0] * 989), \
                self.assertRaisesRegex(RuntimeError, "11 of 1000 pings"):
            speed_load.overload(quick=False, settings="{}")

    def test_a_tunnel_that_answers_sooner_than_none_has_measured_nothing(self):
        duel = mock.Mock(quick=True)
        for plain, inside in ((1.0, 1.0), (math.inf, 2.0), (1.0, math.inf)):
            with self.subTest(plain=plain, inside=inside), self.assertRaises(RuntimeError), \
                    mock.patch.object(speed, "round_trips", mock.Mock(side_effect=[[plain], [inside]])):
                speed._added(duel, None)
        with mock.patch.object(speed, "round_trips", mock.Mock(side_effect=[[1.0], [1.5]])):
            self.assertEqual(speed._added(duel, None)["added ms"], 0.5)


class Disturbed(unittest.TestCase):
    """The download of pair.5, whose first byte after the flood's end comes `late` seconds after it."""

    @staticmethod
    def disturbed(late):
        arrivals = [(0.1 * i, i) for i in range(100)]
        download = mock.Mock(sha256="x", arrivals=arrivals, **{"rate_mbit.return_value": 1.0})
        download.longest_stall = lambda begin, end: _strangers.Download.longest_stall(download, begin, end)
        download.finish = lambda: arrivals.append((arrivals[-1][0] + late, 100))
        detail = {}
        return _strangers._disturbed(download, "x", 0, 10, detail), detail

    def test_a_pause_that_ends_after_the_flood_counts(self):
        self.assertEqual(self.disturbed(0.1)[0], 0)
        self.assertEqual(self.disturbed(3)[0], 1)


class Ends(unittest.TestCase):
    """The server of stream.4."""

    @staticmethod
    async def serve(port, patience, ask):
        with mock.patch.object(ends, "PATIENCE", patience):
            served = asyncio.ensure_future(ends.serve("127.0.0.1", port))
            await asyncio.sleep(0.1)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ask)
            await writer.drain()
            await asyncio.sleep(0.1)
            os.kill(os.getpid(), signal.SIGTERM)
            outcomes = await served
            writer.close()
            return {kind: dict(+each) for kind, each in outcomes.items() if +each}

    def outcomes(self, ask, patience=0.5):
        with contextlib.redirect_stdout(io.StringIO()):
            return asyncio.run(self.serve(18080, patience, ask))

    def test_a_connection_that_hangs_when_all_ends_is_told(self):
        hanging = ends.HEADER.pack(ends.KINDS.index(ends.SERVER_FIRST), 1, 10, 10)
        self.assertEqual(self.outcomes(hanging), {ends.SERVER_FIRST: {ends.HUNG: 1}})

    def test_one_that_says_nonsense_is_told(self):
        self.assertEqual(list(self.outcomes(ends.HEADER.pack(200, 1, 10, 10))), ["without a header"])


class Refused(unittest.TestCase):
    def test_every_errno_of_a_call_is_told_apart(self):
        bench = FaultLab.__new__(FaultLab)
        bench.refused, bench._log = collections.Counter(), mock.Mock()
        bench._judge, bench._life = mock.Mock(), mock.Mock(return_value=(0, True, ""))
        for error, traced in (("ENOMEM", "bind(3) = -1 ENOMEM (INJECTED)"), ("EPERM", "bind(3) = 0")):
            bench._log.read_text.return_value = traced
            bench.refuse_at_start("bind", error, 1)
        self.assertEqual(bench.untested(), ["bind EPERM, start"])


class SynFlood(Silent):
    """shim.6 with a lab in which nothing runs, and gateways whose shims have `seen` so many SYNs."""

    COUNT = 1000

    def syn_flood(self, run, seen=COUNT, arrived=COUNT):
        def status(half_open):
            return {"ack_shim": {"flows": 200, "half_open_flows": half_open,
                                 "actuators": [{"name": "syn_replay", "fired": 2}]}}

        gateways = [mock.MagicMock(**{"status.side_effect": [status(200), status(200 + seen)],
                                      "drops.return_value": {}}) for _ in range(2)]
        for gateway, name in zip(gateways, ("edge", "concentrator")):
            gateway.name = name
        bench = mock.MagicMock()
        bench.__enter__.return_value = bench
        bench.gateways.return_value = gateways
        bench.sites[0].client_address = ["192.168.1.2"]
        bench.client.nft_packets.return_value = arrived + 4
        with mock.patch.multiple(_syn_flood, Lab=mock.Mock(return_value=bench), resident_bytes=lambda _: 0, PERIOD=0,
                                 LiveFlows=mock.Mock(return_value=mock.Mock(lost=0)), COUNT=self.COUNT), \
                mock.patch.object(_syn_flood.Flood, "run", run):
            return _syn_flood.syn_flood()

    @staticmethod
    def whole(flood, _):
        """A run of the flood that sends all."""
        flood.sent = SynFlood.COUNT

    def test_all_were_sent_and_nearly_all_came(self):
        value, detail = self.syn_flood(self.whole, seen=950, arrived=950)
        self.assertEqual((value, detail["syns"], detail["at the host"]), (0, self.COUNT, 950))
        self.assertNotIn(MISSING, detail)

    def test_one_that_breaks_fails_the_target(self):
        with self.assertRaisesRegex(OSError, "no buffer"):
            self.syn_flood(mock.Mock(side_effect=OSError("no buffer")))

    def test_one_that_ends_early_or_is_lost_on_its_way_makes_no_verdict(self):
        for run, numbers, said in ((lambda flood, _: None, {}, "0 of 1000 SYNs were sent"),
                                   (self.whole, {"seen": 10}, "concentrator saw 10 of 1000"),
                                   (self.whole, {"arrived": 10}, "the host saw 10 of 1000")):
            with self.subTest(said):
                self.assertIn(said, self.syn_flood(run, **numbers)[1][MISSING])


class DoorFloods(Silent):
    """Floods of shield.1 to .3 by a process of our own, at a gateway that refuses so many datagrams meanwhile."""

    def bench(self, *words, refused=0):
        """A lab whose floods are these words."""
        def popen(*_, **options):
            process = subprocess.Popen(words, **options)
            self.addCleanup(process.wait)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.kill)
            if words[0] == "false":
                process.wait()
            return process

        def status(count):
            return {"drops": dict.fromkeys(shield.CAUSES, 0) | {"handshake_decrypt_failed": count},
                    "host_drops": {"socket_overflow": count}}

        bench = mock.MagicMock()
        bench.__enter__.return_value = bench
        bench.server.popen = popen
        bench.gateway.status.side_effect = [status(0), status(refused)]
        return bench

    def flood(self, *words, mode="noise", **numbers):
        with mock.patch.object(shield, "binary", lambda name: name):
            return shield.Flood(self.bench(*words, **numbers), mode, 60)

    def test_one_that_died_is_a_failure(self):
        with self.assertRaisesRegex(RuntimeError, "flood noise ended with 1 before"):
            self.flood("false").stop()

    def test_one_that_runs_is_stopped(self):
        flood = self.flood("sleep", "60")
        flood.stop()
        self.assertFalse(flood.running())

    def test_a_dead_one_fails_what_is_measured_under_it(self):
        with mock.patch.multiple(shield, Lab=mock.Mock(return_value=self.bench("false")), binary=lambda name: name,
                                 _time_until_data=lambda _: 0.5, time=mock.Mock(monotonic=time.monotonic)), \
                self.assertRaisesRegex(RuntimeError, "ended with 1"):
            shield.restart_under_floods()

    def test_one_that_reaches_nobody_makes_no_verdict(self):
        for refused, reached in ((0, False), (10**9, True)):
            detail, flood = {}, self.flood("sleep", "60", refused=refused)
            flood.require_reached(detail)
            with self.subTest(refused):
                self.assertEqual(MISSING not in detail, reached)

    def test_one_must_be_as_fast_as_was_asked(self):
        begun = 0.95 * shield.HANDSHAKES * shield.FLOOD_SECONDS
        whole = {"per_second": shield.FAST, "refused": 0, "handshakes": begun}
        for mode, change, said in (("noise", {}, "nothing"), ("handshakes", {}, "nothing"),
                                   ("noise", {"per_second": 100}, "100 a second"),
                                   ("handshakes", {"handshakes": 0}, "0 a second"),
                                   ("hellos", {"refused": 7}, "refused 7")):
            detail = {}
            shield.require_sent(detail, mode, whole | change)
            with self.subTest(mode=mode, said=said):
                self.assertIn(said, detail.get(MISSING, "nothing is missing"))


class Figures(dict):
    """A possible output of a simulator. Its p99, mean and share encode seed, controller and loss."""

    def __init__(self, arguments):
        super().__init__(fct_by_packet=[1.0])
        seed = arguments[arguments.index("--seed") + 1] if "--seed" in arguments else 1
        own = "--controller" not in arguments
        loss_free = "--loss" in arguments and float(arguments[arguments.index("--loss") + 1]) == 0
        self["p99"] = seed if loss_free or not own else 3 * seed * seed
        self["mean"] = seed * seed if "amp" in arguments else seed

    def __missing__(self, name):
        return 1.0

    def but(self, **more):
        self.update(more)
        return self


class Simulated(unittest.TestCase):
    """Targets with a fake simulator: `self.runs` has the requested runs."""

    def setUp(self):
        self.runs = []
        for module in (_simulate, recovery, rate):
            self.patch(module, "simulate", self.simulate)
        self.patch(lab, "beside", lambda value, detail, *_, **__: (value, detail))

    def patch(self, *arguments):
        patch = mock.patch.object(*arguments)
        patch.start()
        self.addCleanup(patch.stop)

    def simulate(self, _, runs):
        self.runs += runs.values()
        return {key: Figures(arguments) for key, arguments in runs.items()}

    def test_warm_tunnels_have_the_products_controller(self):
        """The value of recovery.2b, and one warm detail of recovery.5, come from runs that name no controller."""
        value, _ = recovery.responses_warm()
        self.assertEqual(value, 3, "of one with a controller's name it is 1")
        _, detail = recovery.bursts()
        self.assertIn("one warm tunnel, default", detail)
        named = {run[run.index("--controller") + 1] for run in self.runs if "--controller" in run}
        self.assertEqual(named, {"newreno"})

    def test_the_value_is_of_the_first_seed_and_others_are_told(self):
        for measure in (recovery.responses_warm, recovery.fabric):
            value, detail = measure()
            self.assertEqual((value, detail["the value by seed"]), (3, [3, 6, 9, 12, 15]))
        value, detail = rate.incast()
        self.assertEqual((value, detail["the value by seed"]), (1, [1, 2, 3, 4, 5]))
        for measure in (recovery.targeted, recovery.targeted_random, recovery.responses, recovery.bursts,
                        recovery.mice):
            with self.subTest(measure=measure):
                self.assertEqual(len(measure()[1]["the value by seed"]), 5)

    def test_lossy_links_are_elsewhere_with_each_seed(self):
        value, detail = recovery.routers()
        self.assertEqual(value, 1)
        elsewhere = next(value for name, value in detail.items() if "other lossy links" in name)
        self.assertEqual(len(elsewhere), 4)
        self.assertEqual({run[run.index("--seed") + 1] for run in self.runs if "--seed" in run}, {2, 3, 4, 5})

    def test_a_ratio_is_judged_as_it_is_and_not_rounded(self):
        def of_cofuso(_, runs):
            return {key: Figures(arguments).but(p99=1.0004 if "cofuso" in arguments else 1.0)
                    for key, arguments in runs.items()}

        for module in (_simulate, recovery):
            self.patch(module, "simulate", of_cofuso)
        self.assertAlmostEqual(recovery.routers()[0], 1.0004)

    def test_a_flow_that_did_not_end_fails_the_target(self):
        def simulate(_, runs):
            return {key: Figures(arguments).but(incomplete=2, times=[1.0], means=[1.0])
                    for key, arguments in runs.items()}

        for module in (_simulate, recovery, rate, shim_racks):
            self.patch(module, "simulate", simulate)
        for measure in (recovery.fabric, recovery.routers, rate.incast, shim_racks.racks):
            with self.subTest(measure=measure):
                self.assertIn(" flows did not end", measure()[1][MISSING])

    def shifting(self, settled):
        def simulate(_, runs):
            return {key: Figures(arguments).but(shift_ms=0, windows_before=[26, 2], windows_settled=settled)
                    for key, arguments in runs.items()}

        self.patch(rate, "simulate", simulate)
        return rate.traffic_shifting()[1]

    def test_a_controller_that_stays_has_not_moved_at_once(self):
        self.assertNotIn(MISSING, self.shifting([2, 30]))
        self.assertIn("nothing has moved", self.shifting([26, 2])[MISSING])

    def test_connections_that_carry_nothing_are_not_fair(self):
        self.assertIn("Mbit/s, at least", rate.minimum_window_syndrome()[1][MISSING])

    def test_every_download_is_told(self):
        _, detail = recovery.bulk()
        self.assertEqual(len(detail["0% loss on WiFi"]["adaptive"]["goodputs by seed"]), 8)


class Transport(unittest.TestCase):
    """The targets of the transport with a fake simulator, `self.figures` of all of whose runs a test may change."""

    def setUp(self):
        self.asked = []
        self.figures = lambda arguments: {}
        patch = mock.patch.object(transport, "simulate", self.simulate)
        patch.start()
        self.addCleanup(patch.stop)

    def simulate(self, _, runs):
        self.asked += runs.values()
        good = {"share": 0.96, "full_s": 2.0, "worst_loss": 0.05, "loss": 0.01, "goodput_share": 0.95}
        return {key: good | self.figures(arguments) for key, arguments in runs.items()}

    def test_each_sender_has_each_network_and_seed(self):
        transport.downloads(3)
        self.assertEqual(len(self.asked), 5 * 2 * 3)
        self.assertEqual(len({tuple(run) for run in self.asked}), len(self.asked))

    def test_the_worst_ratio_is_the_value(self):
        value, detail = transport.downloads(10)
        self.assertAlmostEqual(value, 0.96 / 0.92)
        self.assertEqual(detail["worst"], "wifi-lte")
        self.figures = lambda run: {"share": 0.3} if "far" in run and "newreno" in run else {}
        value, detail = transport.downloads(10)
        self.assertAlmostEqual(value, 0.5)
        self.assertEqual(detail["worst"], "far")

    def test_a_late_start_counts(self):
        self.figures = lambda run: {"full_s": 5.0} if "long" in run and "cubic" in run else {}
        value, detail = transport.downloads(10)
        self.assertEqual((value, detail["worst"]), (0.5, "time to 0.9 of the sum"))

    def test_medians_over_the_seeds(self):
        self.figures = lambda run: {"share": 0.1} if run[-1] <= 4 else {}
        self.assertAlmostEqual(transport.downloads(10)[0], 0.96 / 0.92)

    def test_the_worst_policer_is_the_value(self):
        self.figures = lambda run: {"worst_loss": 0.4} if run[2] == 2e6 and run[-1] == 10 else {}
        value, detail = transport.policers(10)
        self.assertEqual(value, 0.4)
        self.assertNotIn(MISSING, detail)
        self.assertEqual(len(self.asked), 3 * 3 * 2 * 10)

    def test_a_policed_rate_must_be_used(self):
        self.figures = lambda run: {"goodput_share": 0.5} if run[2] == 8e6 and run[4] == 30 else {}
        self.assertIn("8 Mbit/s, 30 ms, cubic", transport.policers(10)[1][MISSING])


class Claims(unittest.TestCase):
    def test_inputs_are_told_and_are_no_part_of_the_share(self):
        claim = {"paper": "fuso", "claim": "tail", "met": False}
        said = {"met": 1, "all": 2, "share": 0.5, "claims": [claim, {**claim, "claim": "gain", "met": True}],
                "inputs": [{**claim, "claim": "links"}], "without a claim": []}
        with mock.patch.object(eval_claims, "evaluation_run",
                               lambda *_: mock.Mock(returncode=0, stdout=json.dumps(said))):
            value, detail = eval_claims.claims(quick=False, recorded=False)
        self.assertEqual((value, detail["met"], detail["all"], list(detail["missed"])), (0.5, 1, 2, ["fuso tail"]))
        self.assertEqual(detail["inputs, not counted"], ["fuso links"])

    def test_a_reduced_grid_is_no_verdict(self):
        with mock.patch.object(eval_claims, "evaluation_run", lambda *_: mock.Mock(returncode=0, stdout="[]")):
            for quick in (False, True):
                self.assertEqual(MISSING in eval_claims.run_says(["rivals", "x"], ["all"], quick, False)[1], quick)


class Crosscheck(unittest.TestCase):
    def test_cases_that_have_a_longer_twin_do_not_count_as_settled(self):
        pair = {"figure": "jain", "case": "tree", "settled": True}
        pairs = [{**pair, "difference": -0.3, "settled": False}, {**pair, "difference": -0.1},
                 {**pair, "difference": 0.05}, {**pair, "difference": 0.5, "explained": "another rule"}]
        said = json.dumps({"worst": 0.3, "pairs": pairs})
        with mock.patch.object(eval_ns3.subprocess, "run", lambda *_, **__: mock.Mock(stdout=f"a table\n{said}\n")):
            self.assertEqual(eval_ns3.against_ns3()[0], 0.3)
            value, detail = eval_ns3.against_ns3_settled()
        self.assertEqual((value, detail["with the cases of 0.1 s"]), (0.1, 0.3))
        self.assertEqual(list(detail["explained"]), ["tree, jain"])


class Protocol(unittest.TestCase):
    def test_the_document_is_read(self):
        """All rows of its section on ranges are rules, whatever sections come behind it."""
        vectors, rules = shield_protocol._documented()
        self.assertIn("V1", vectors)
        self.assertIn("ack.count", rules)
        self.assertGreater(len(rules), 90)


class SameDatagrams(unittest.TestCase):
    """house.1b compares with commits at which each group of experiments was a program of its own."""

    HELP = "#!/bin/bash\nprintf 'one of:\\n  incast: many\\n  two-racks: few\\n\\nOptions:\\n  -h: help\\n'\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name):
        path = self.folder / name
        path.write_text(self.HELP, encoding="utf-8")
        path.chmod(0o755)
        return path

    def test_the_programs_of_a_folder_are_those_that_it_has(self):
        group = house.Group("rate", "--controller", ["amp", "wan"], "--time 2")
        rest = ["incast", "--seed", "7", "--controller", "amp", "--time", "2"]
        former = self.program("sim_rate")
        before = group.runs(self.folder)
        self.assertEqual(before["rate", "incast", "amp"], [former, *rest])
        today = self.program("braid-sim")
        after = group.runs(self.folder)
        self.assertEqual(after["rate", "incast", "amp"], [today, "rate", *rest])
        self.assertEqual(before.keys(), after.keys())
        self.assertEqual({experiment for _, experiment, _ in after}, {"incast", "two-racks"})

    def test_what_is_built_of_a_checkout(self):
        self.assertEqual(house._sim_programs(self.folder), ["sim_chaos", "sim_recovery", "sim_rate", "sim_racks"])
        (self.folder / "evaluation").mkdir()
        self.assertEqual(house._sim_programs(self.folder), ["sim_chaos", "braid-sim"])


class WorstRatio(unittest.TestCase):
    """eval.6 with an experiment `tracks-1` that is not run, and a shim.4 of one row."""

    seeds = 5  # that are recorded

    @staticmethod
    def entry(report, ratio, interval=0.1, variant="shim", against="off", name="tracks-1"):
        return {"experiment": name, "paper": "tracks", "report": report, "variant": variant, "against": against,
                "point": {"alpha": "10"}, "ratio": ratio, "interval": interval, "seeds": 5}

    def harmless(self, found, faults=0, code=0, recorded=False):
        def evaluation_run(*words):
            self.asked.append(words)
            done = mock.Mock(returncode=0 if words[0] == "ratios" else code)
            seeds = {"tracks-1": {"commit": "abc", "seeds": self.seeds, "of": 5, "unfinished": {"off": 3}},
                     "amp-8": {"commit": None, "seeds": 0, "of": 5, "unfinished": {}}}
            done.stdout = json.dumps(seeds if words[0] == "recorded" else found)
            return done

        self.asked = []
        with mock.patch("targets.eval.evaluation_run", evaluation_run), \
                mock.patch.object(eval_shim, "ROOT", mock.MagicMock()) as root, \
                mock.patch.object(eval_shim, "rack_ratios", lambda: ({"shim.4, p99_ms": 0.5}, faults)):
            folder = root / "evaluation" / "experiments"
            folder.glob.return_value = [types.SimpleNamespace(stem="tracks-1")]
            return eval_shim.harmless(quick=False, recorded=recorded, lab=False)

    def test_the_worst_is_told_of_both(self):
        found = [self.entry("p50", 1.1), self.entry("p50_small", 0.9), self.entry("p99", 1.5, 0.6),
                 self.entry("p99_small", 1.0), self.entry("mean", 7), self.entry("p99", 8, variant="duplicates")]
        value, detail = self.harmless(found)
        self.assertEqual(value, 1.5)
        self.assertEqual(detail["worst by share"], {"p50": 1.1, "p99": 1.5})
        self.assertEqual(detail["p99"]["above 1.02"],
                         {"tracks-1, alpha 10, p99": {"ratio": 1.5, "95 % interval": 0.6}})
        self.assertEqual(detail["p99"]["rows"], 3, "that of shim.4 is one")
        self.assertEqual(detail["p99"]["surely above 1.02, with the whole interval"], [])
        self.assertEqual(list(detail["p50"]["above 1.02"]), ["tracks-1, alpha 10, p50"])
        self.assertEqual(detail[MISSING], "without shim.2 and shim.3, of real kernels: --lab")

    def test_what_is_recorded_is_judged_without_a_run_and_says_so(self):
        _, detail = self.harmless([self.entry("p50", 1), self.entry("p99", 1)], recorded=True)
        self.assertEqual(self.asked, [("recorded",), ("ratios", "--recorded")])
        self.assertEqual(detail["judged, nothing was run"], {"tracks-1": "5 of 5 seeds, abc"})
        self.assertEqual(detail["flows that had not ended with their run"], {"tracks-1": {"off": 3}})
        self.assertNotIn("not recorded", detail[MISSING])
        self.assertEqual(detail["measured now"], "the rows of shim.4")
        self.harmless([self.entry("p50", 1), self.entry("p99", 1)])
        self.assertEqual(self.asked, [("tracks-1",), ("ratios",)])

    def test_a_part_of_the_seeds_makes_no_verdict(self):
        self.seeds = 4
        _, detail = self.harmless([self.entry("p50", 1), self.entry("p99", 1)], recorded=True)
        self.assertIn("not recorded with all seeds: tracks-1", detail[MISSING])

    def test_an_experiment_must_tell_both(self):
        _, detail = self.harmless([self.entry("p50", 1), self.entry("mean", 1)])
        self.assertIn("tracks-1 has no p99", detail[MISSING])

    def test_what_is_not_defined_or_did_not_end_is_missing(self):
        both = [self.entry("p50", 1), self.entry("p99", 1)]
        for found, more, said in (([*both, self.entry("p99_small", None)], {}, "p99_small is not defined"),
                                  (both, {"faults": 2}, "flows that failed"),
                                  (both, {"code": 1}, "an experiment failed")):
            with self.subTest(said):
                self.assertIn(said, self.harmless(found, **more)[1][MISSING])


class Openings(unittest.TestCase):
    """The verdict of aid.2 over runs of which some are not what they should be."""

    NOISE = {"mbit": 100.0, "ping p99 ms": 10.0, "hub's processor": 0.5, "attack mbit": 5.0, "offered": 0,
             "session closed": False, "refused": 0, "resets by code": {}, "connected": 0}
    OPENINGS = NOISE | {"offered": 200_000, "refused": 190_000, "resets by code": {"4": 5000}, "connected": 6000}

    def verdict(self, noise=({}, {}, {}), openings=({}, {}, {})):
        return aid_openings.verdict({"noise": [self.NOISE | each for each in noise],
                                     "openings": [self.OPENINGS | each for each in openings]}, 5.0)

    def test_the_medians_are_compared(self):
        value, detail = self.verdict([{"mbit": 80.0}, {"mbit": 100.0}, {"mbit": 500.0}],
                                     [{"mbit": 1.0}, {"mbit": 95.0}, {"mbit": 96.0}])
        self.assertAlmostEqual(value, 0.95)
        self.assertNotIn(MISSING, detail)
        self.assertEqual(detail["openings"]["connected"], [6000] * 3)
        json.dumps(detail, allow_nan=False)

    def test_what_was_no_attack_makes_no_verdict(self):
        for change, said in (({"attack mbit": 4.0}, "openings: 4.00 Mbit/s of 5.0"),
                             ({"session closed": True}, "openings: the session was closed"),
                             ({"connected": 0}, "none became a connection")):
            with self.subTest(said):
                self.assertIn(said, self.verdict(openings=[{}, change, {}])[1][MISSING])

    def test_noise_must_be_as_fast_and_open_nothing(self):
        for change, said in (({"attack mbit": 4.0}, "noise: 4.00 Mbit/s of 5.0"),
                             ({"connected": 3}, "noise: had openings")):
            with self.subTest(said):
                self.assertIn(said, self.verdict(noise=[{}, change, {}])[1][MISSING])


class Rights(unittest.TestCase):
    """The verdict of guard.6."""

    SITUATIONS = ("root", "root with a user", "container", "systemd, bookworm", "systemd, trixie")

    def test_each_right_counts(self):
        found = {name: [] for name in self.SITUATIONS} | {"root": ["reads /root", "writes /etc/passwd"]}
        value, detail = guard_rights.verdict(found)
        self.assertEqual(value, 2)
        self.assertNotIn(MISSING, detail)

    def test_a_situation_that_was_not_looked_at_is_missing(self):
        value, detail = guard_rights.verdict({name: [] for name in self.SITUATIONS[:3]})
        self.assertEqual(value, 0)
        self.assertIn("situations: 3", detail[MISSING])


class ManyAddresses(unittest.TestCase):
    """The verdict of guard.2."""

    GOOD = {"new": [0.1, 1.0], "known": [0.1, 1.0], "limited a second": 1400, "floods went on": True, "finished": 300,
            "handshakes": 60_000}

    def verdict(self, **change):
        return guard.verdict({"IPv4": dict(self.GOOD), "IPv6": self.GOOD | change})

    def test_known_hosts_that_come_late_are_counted(self):
        self.assertEqual(self.verdict()[0], 0)
        self.assertNotIn(MISSING, self.verdict()[1])
        self.assertEqual(self.verdict(known=[1.1, 0.1, 5.0])[0], 2)

    def test_a_late_newcomer_or_no_attack_makes_no_verdict(self):
        for change, said in (({"new": [0.1, 1.2]}, "IPv6: a new peer is up after 1.2 s"),
                             ({"floods went on": False}, "a flood ended"),
                             ({"finished": 3}, "finished 3 handshakes only"),
                             ({"handshakes": 100}, "100 handshakes begun"),
                             ({"limited a second": 10}, "were not used up")):
            with self.subTest(said):
                self.assertIn(said, self.verdict(**change)[1][MISSING])


class Attacks(unittest.TestCase):
    """The verdict of guard.1."""

    TURNS = {"mbit": 500.0, "pings": [5.0] * 90 + [20.0] * 10, "attack mbit": 4.9, "sent": 1000}

    def verdict(self, *changes, attacks=10, alive=True, counted=30000, drops=()):
        """`changes`: of one of the attacks, by round, each of the daemon's turns and of the sink's."""
        def runs(changes):
            return [{"daemon": self.TURNS | daemon, "sink": self.TURNS | sink, "drops": {}, "alive": True}
                    for daemon, sink in changes]
        bad = runs(changes or [({}, {})] * 3)
        bad[1]["alive"] = alive
        bad[1]["drops"] = {cause: 1 for cause in drops}
        return guard_attacks.verdict({f"attack{i}": runs([({}, {})] * 3) for i in range(attacks - 1)} | {"flows": bad},
                                     counted)

    def test_the_worst_attack_counts_by_the_median_of_its_rounds(self):
        value, detail = self.verdict(({"mbit": 450.0}, {}), ({"mbit": 100.0}, {}), ({"mbit": 300.0}, {"mbit": 400.0}))
        self.assertEqual(value, 0.75)
        self.assertEqual(detail["flows"]["ratios"], [0.9, 0.2, 0.75])
        self.assertNotIn(MISSING, detail)
        self.assertEqual(self.verdict()[0], 1)

    def test_what_makes_no_verdict(self):
        def late(most):
            return [({"pings": [5.0] * 90 + [most] * 10}, {})] * 3

        for changes, more, said in ((late(71.0), {}, "flows: ping p99 71 ms instead of 20 ms"),
                                    ([({}, {}), ({"attack mbit": 4.4}, {}), ({}, {})], {}, "flows: 4.40 Mbit/s of 5"),
                                    ([({}, {}), ({}, {"attack mbit": 4.4}), ({}, {})], {}, "flows: 4.40 Mbit/s of 5"),
                                    ([], {"alive": False}, "flows: the session ended early"),
                                    ([], {"drops": ["bad_frame"]}, "flows: not as meant: bad_frame"),
                                    ([], {"counted": 26999}, "the sink counted 26999 of 30000"),
                                    ([], {"attacks": 9}, "9 of at least 10 attacks")):
            with self.subTest(said):
                self.assertIn(said, self.verdict(*changes, **more)[1][MISSING])
        self.assertNotIn(MISSING, self.verdict(*late(70.0), counted=27000, drops=["duplicate"])[1])

    def test_the_turns_of_a_place(self):
        download = mock.Mock(size=lambda begin, end: (end - begin) * 1e6)
        slices = [{"to": to, "from": 2.0 * i, "until": 2.0 * i + 2, "mbit": 5 - i / 10, "sent": 10 + i}
                  for i, to in enumerate(["daemon", "sink"] * 2)]
        got = guard_attacks.turns(slices, "sink", download, [(2.1, 1.0), (2.3, 2.0), (4.1, 3.0), (7.9, 4.0)])
        self.assertEqual(got, {"mbit": 8.0, "pings": [2.0, 4.0], "attack mbit": 4.7, "sent": 24})

    def test_pings_without_an_answer_are_late(self):
        text = "".join(f"[{1000.5 + number / 50}] 64 bytes from 192.0.2.1: icmp_seq={number} ttl=62 time=500 ms\n"
                       for number in (1, 2, 4))
        got = guard_attacks.sent_and_answered(text, 900)
        self.assertEqual([(round(at, 3), took) for at, took in got],
                         [(100.02, 500), (100.04, 500), (100.06, guard_attacks.LATEST_MS), (100.08, 500)])
        self.assertEqual(guard_attacks.sent_and_answered("no answer", 0), [])

    def test_a_row_is_whole_and_there_once(self):
        row = "- {id: a, targets: [guard.1], by: peer, does: x, aims: y}\n"
        self.assertEqual(list(guard_attacks.read("attacks:\n" + row, "guard.1")), ["a"])
        self.assertEqual(list(guard_attacks.read("attacks:\n" + row, "shield.4b")), [])
        for rows in (row + row, "- {id: a, targets: [guard.1], by: peer, does: x}\n"):
            with self.assertRaises(ValueError):
                guard_attacks.read("attacks:\n" + rows, "guard.1")

    def test_the_table(self):
        table = guard_attacks.TABLE.read_text(encoding="utf-8")
        made = (guard_attacks.ROOT / "tests/second/attacks.py").read_text(encoding="utf-8")
        for wanted, least in (("guard.1", guard_attacks.ATTACKS), ("shield.4b", shield_streams.ATTACKS)):
            rows = guard_attacks.read(table, wanted)
            self.assertGreaterEqual(len(rows), least)
            for name in rows:
                self.assertIn(f"@attack\ndef {name}(", made)


class Fuzzers(unittest.TestCase):
    """guard.5"""

    ROW = {"floor": 90, "files": ["src/a.cc"]}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for file in ("tests/fuzz/a_fuzz.cc", "tests/fuzz/b_fuzz.cc", "src/a.cc"):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).touch()

    def read(self, **rows):
        return guard_fuzz.read(json.dumps({"a": self.ROW, "b": self.ROW} | rows), self.root)

    def test_every_fuzzer_has_a_whole_row(self):
        self.assertEqual(set(self.read()), {"a", "b"})
        for row, said in (({"floor": 90}, "b: a row has"), ({"floor": 90, "files": []}, "b: a row has"),
                          (self.ROW | {"floor": 0}, "b: the floor"), (self.ROW | {"floor": 101}, "b: the floor"),
                          (self.ROW | {"floor": 89.5}, "b: the floor"), (self.ROW | {"more": 1}, "b: a row has"),
                          (self.ROW | {"files": ["src/a.cc", "src/gone.cc"]}, "b: there is no src/gone.cc")):
            with self.subTest(row), self.assertRaisesRegex(ValueError, said):
                self.read(b=row)
        with self.assertRaisesRegex(ValueError, "row: gone"):
            self.read(gone=self.ROW)
        with self.assertRaisesRegex(ValueError, "row: b$"):
            guard_fuzz.read(json.dumps({"a": self.ROW}), self.root)

    def test_the_table(self):
        rows = guard_fuzz.read((guard_fuzz.ROOT / guard_fuzz.TABLE).read_text(encoding="utf-8"))
        self.assertEqual(sorted(rows), guard_fuzz.names())
        self.assertEqual([name for name, row in rows.items() if row["floor"] is None], [], "no floor was measured")

    def test_only_the_files_of_the_row_count(self):
        def file(name, covered, count):
            return {"filename": name, "summary": {"regions": {"covered": covered, "count": count}}}

        told = {"data": [{"files": [file("/x/src/a.cc", 9, 10), file("src/b.cc", 10, 30), file("/x/mysrc/a.cc", 0, 99),
                                    file("/x/other/src.cc", 0, 50)]}]}
        self.assertEqual(guard_fuzz.reached(told, ["src/a.cc"]), 90)
        self.assertEqual(guard_fuzz.reached(told, ["src/a.cc", "src/b.cc"]), 47.5)
        with self.assertRaisesRegex(RuntimeError, "no code of src/gone.cc"):
            guard_fuzz.reached(told, ["src/a.cc", "src/gone.cc"])

    def test_a_fuzzer_below_its_floor_or_with_a_finding_counts_once(self):
        rows = {name: self.ROW for name in "abc"}
        self.assertEqual(guard_fuzz.verdict(rows, [], {"a": 90.0, "b": 90.1, "c": 100})[0], 0)
        value, detail = guard_fuzz.verdict(rows, ["b", "c"], {"a": 89.9, "b": 10, "c": 100})
        self.assertEqual(value, 3)
        self.assertEqual((detail["below"], detail["found"]), (["a", "b"], ["b", "c"]))
        self.assertEqual(detail["coverage"]["a"], [89.9, 90])
        self.assertNotIn(MISSING, detail)

    def test_a_floor_that_was_not_measured_makes_no_verdict(self):
        rows = self.read(b=self.ROW | {"floor": None})
        value, detail = guard_fuzz.verdict(rows, [], {"a": 100, "b": 0})
        self.assertEqual((value, detail[MISSING]), (0, "no floor yet: b"))

    def test_what_a_hunt_finds(self):
        def hunt(status, told):
            done = subprocess.CompletedProcess([], status, stdout=told)
            with mock.patch.object(guard_fuzz.subprocess, "run", return_value=done) as run:
                found = guard_fuzz.hunt(["a", "b"], 30)
            self.assertEqual(run.call_args.args[0][1:], ["--minutes", "30", "--each", "--only", "a", "--only", "b"])
            return found

        self.assertEqual(hunt(0, "a  9 runs\nb  9 runs\n"), [])
        self.assertEqual(hunt(1, "a  9 runs\nb FAILED: build/fuzz/hunt/b/log; its end:\nx\n"), ["b"])
        with self.assertRaisesRegex(RuntimeError, "cannot build"):
            hunt(1, "cannot build\n")

    def test_less_than_five_minutes_are_no_verdict(self):
        entry = REGISTRY["guard.5"]
        self.assertEqual(entry.looks({"minutes": 30, "only": None}), [])
        self.assertEqual(entry.looks({"minutes": 4, "only": ["a"]}), ["--minutes", "--only"])


class Alerts(unittest.TestCase):
    @unittest.skipUnless(shutil.which("promtool"), "no promtool (scripts/deps web)")
    def test_what_the_rules_for_prometheus_say(self):
        self.assertIs(_page_tour.promtool("test", "rules", _page_tour.RULES_TEST), True)


class LargeGateway(unittest.TestCase):
    """see.2"""

    SUBFLOW = {"id": "0", "path": "dsl", "uplink": "dsl", "state": "active", "sent_bytes": 300}
    STATUS = {"peers": [{"name": "edge", "up": True, "subflows": [SUBFLOW]}], "gateway": {"uplinks": [{"name": "dsl"}]}}

    def test_peers_and_paths_are_repeated_under_names_that_a_gateway_may_have(self):
        told = _stand_in.Crowd(peers=20, paths=8).answer({"cmd": "status"}, self.STATUS)
        names = [peer["name"] for peer in told["peers"]]
        self.assertEqual((len(set(names)), names[0], len(names[1])), (20, "edge-00", _stand_in.LONGEST_NAME))
        self.assertEqual([peer["up"] for peer in told["peers"]].count(False), 2)
        paths = told["peers"][0]["subflows"]
        self.assertEqual([path["id"] for path in paths], [str(place) for place in range(8)])
        self.assertEqual([path["state"] for path in paths], ["active"] * 5 + ["failed"] + ["active"] * 2)
        self.assertEqual([uplink["name"] for uplink in told["gateway"]["uplinks"]], [path["uplink"] for path in paths])

    def test_a_question_about_one_of_them_is_asked_about_the_real_one(self):
        crowd = _stand_in.Crowd(peers=20, paths=8)
        index = crowd.answer({"cmd": "history"}, {"peers": ["edge"], "paths": [{"peer": "edge", "path": "dsl"}]})
        self.assertEqual((len(index["peers"]), len(index["paths"])), (20, 160))
        question = {"cmd": "history", **index["paths"][-1]}
        self.assertEqual(crowd.asked(question), {"cmd": "history", "peer": "edge", "path": "dsl"})
        self.assertEqual(crowd.answer(question, {"peer": "edge", "path": "dsl", "steps": []})["peer"], "edge-19")

    def test_one_of_each_is_what_there_is(self):
        self.assertEqual(_stand_in.Crowd().answer({"cmd": "status"}, self.STATUS)["peers"][0]["name"], "edge")


class Packages(unittest.TestCase):
    """see.5"""

    SIZES = {"usr/bin/braidd": 6_999_999, "etc/x": 1, "usr/share/doc/braid/guide.md.gz": 9_000_000,
             "usr/share/man/man8/braidd.8.gz": 5}

    def test_documents_do_not_count(self):
        value, detail = see_packages.judged(594, self.SIZES, {"stages": []})
        self.assertEqual((value, detail["installed_bytes"], detail["documents_bytes"]), (9.9, 7_000_000, 9_000_005))
        self.assertNotIn(MISSING, detail)

    def test_more_than_the_bound_is_not_met_and_nothing_neither(self):
        for sizes in (self.SIZES | {"etc/x": 2}, {}):
            self.assertIn("at most 7,000,000", see_packages.judged(1, sizes, {})[1][MISSING])

    @unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb")
    def test_what_packages_install_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder, "tree")
            control = "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x.example>\nDescription: x\n"
            for path, text in (("DEBIAN/control", control), ("usr/bin/x", "12345")):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_text(text, encoding="ascii")
            package = pathlib.Path(folder, "x.deb")
            subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, package], check=True,
                           stdout=subprocess.DEVNULL)
            self.assertEqual(see_packages.installed([package]), {"usr/bin/x": 5})
            with self.assertRaises(subprocess.CalledProcessError):
                see_packages.installed([tree / "usr/bin/x"])


class WhatFailed(unittest.TestCase):
    def test_names_a_failure_that_a_long_output_follows(self):
        told = operate_packages._what_failed("x_test.cc:5: Failure\nactual: 9 vs 21\n[  FAILED  ] A.b (1 ms)\n"
                                             + "much more\n" * 1000)
        self.assertIn("x_test.cc:5: Failure\nactual: 9 vs 21\n[  FAILED  ] A.b", told)
        self.assertLess(len(told), 2000)


if __name__ == "__main__":
    unittest.main()
