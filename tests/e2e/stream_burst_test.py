"""Bursts of short TCP connections through the stream lane, at the client's highest rate on this machine, with real
kernels, sockets and firewall rules. Prints the rates and the daemons' CPU time per connection."""

import json
import signal
import threading
import time
import unittest

from lab import Lab
from lab.links import Wire
from lab.measure import median, thread_nanoseconds
from pair_case import V4, PairCase

PORT = 8080
COUNT, AT_ONCE = 20_000, 400
BOUND = 300  # connections, far fewer than are open at once
WAITING = 512  # Streams::kMostWaiting
PATIENCE = 20  # seconds that a connection may take
# A host has 28,000 ports, and each may rest for a minute.
SOURCES = [f"192.168.10.{host}" for host in range(3, 7)]
STREAMS = {"streams": {"enabled": "on", "match": [{"ports": PORT}], "new-streams-per-peer": 5 * COUNT}}


class Bursts(PairCase):
    LINKS = [Wire("wire")]
    EDGE = CONCENTRATOR = STREAMS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for source in SOURCES:
            cls.lab.client.ip("address", "add", f"{source}/24", "dev", "lan0")
        cls.lab.start(cls.lab.server, "server", [cls.lab.binary("burst"), "serve", f"0.0.0.0:{PORT}"])
        cls.lab.wait_for_line("server", "ready")

    def setUp(self):
        self.configure()

    def configure(self, edge=None, concentrator=None):
        """Restarts both gateways with these additional settings of streams."""
        for gateway, settings in ((self.lab.edge_gateway, edge), (self.lab.gateway, concentrator)):
            gateway.config["streams"] = STREAMS["streams"] | (settings or {})
            gateway.restart()
        for gateway in self.lab.gateways():
            self.eventually(lambda: (gateway.status() or {"streams": {}})["streams"].get("intercepting"),
                            f"{gateway.name} takes connections over")

    def figures(self, gateway):
        return gateway.status()["streams"]

    def burst(self, address=V4, sources=SOURCES, at_once=AT_ONCE):
        """Makes a burst and returns the outcomes of its connections."""
        command = [self.lab.binary("burst"), "ask", f"{address}:{PORT}", "--count", COUNT, "--at-once", at_once,
                   "--patience", PATIENCE]
        for source in sources:
            command += ["--source", source]
        return json.loads(self.lab.client.run(*command, timeout=240))

    def burst_beside_pings(self, **options):
        """Makes a burst with pings through the tunnel meanwhile, which must be answered."""
        over, lost, seconds = threading.Event(), [], []

        def ping():
            while not over.is_set():
                began = time.monotonic()
                lost.append(self.ping(count=1, wait=2) == 0)
                seconds.append(time.monotonic() - began)

        other = threading.Thread(target=ping, daemon=True)
        other.start()
        try:
            return self.burst(**options)
        finally:
            over.set()
            other.join()
            print(f"{len(lost)} pings meanwhile, {sum(lost)} without an answer; with their process they took "
                  f"{median(seconds) * 1e3:.0f} ms, {max(seconds) * 1e3:.0f} at most")
            self.assertGreater(len(lost), 5)
            self.assertEqual(sum(lost), 0)

    def assert_whole(self, done):
        """No connection hangs, and none gets wrong bytes or too few."""
        print(f"{done['rate']:.0f} connections a second: {done}")
        self.assertEqual({key: done[key] for key in ("wrong", "short", "hung", "failed")},
                         {"wrong": 0, "short": 0, "hung": 0, "failed": 0})
        self.assertEqual(done["good"] + done["reset"], COUNT)

    def assert_all_over(self):
        for gateway in self.lab.gateways():
            self.eventually(lambda: self.figures(gateway)["open"] == 0, f"{gateway.name} to have no more")
            peer = gateway.status()["peers"][0]
            self.assertEqual((peer["stream_count"], peer["streams_held_bytes"]), (0, 0))

    def test_as_fast_as_the_client_can(self):
        alone = self.burst(Lab.server_addresses(0)[0], sources=())
        print(f"without Braid: {alone['rate']:.0f} connections a second")
        before = [sum(thread_nanoseconds(gateway.process.pid).values()) for gateway in self.lab.gateways()]
        done = self.burst_beside_pings()
        self.assert_whole(done)
        for gateway, began in zip(self.lab.gateways(), before):
            spent = sum(thread_nanoseconds(gateway.process.pid).values()) - began
            print(f"{gateway.name}: {spent / COUNT / 1e3:.0f} us of CPU for a connection, its system calls included")
        self.assertEqual(done["good"], COUNT)
        self.assertEqual(self.figures(self.lab.edge_gateway)["accepted"], COUNT)
        self.assert_all_over()

    def over_the_bound(self, **settings):
        self.configure(**settings)
        done = self.burst_beside_pings(at_once=4 * BOUND)
        near, far = self.figures(self.lab.edge_gateway), self.figures(self.lab.gateway)
        print(f"{near['accepted']} in the stream lane, {near['rejected']} and {far['rejected']} turned away, "
              f"{near['bypassed']} times no more were taken over")
        self.assert_whole(done)
        self.assertGreater(near["accepted"], 0)
        self.assertLess(near["accepted"], COUNT, "the others were packets")
        self.assert_all_over()
        return done

    def test_over_the_bound_of_the_near_gateway(self):
        done = self.over_the_bound(edge={"max-connections": BOUND})
        self.assertEqual(done["reset"], 0)

    def test_over_the_bound_of_the_peer(self):
        done = self.over_the_bound(edge={"max-streams-per-peer": BOUND}, concentrator={"max-streams-per-peer": BOUND})
        self.assertEqual(done["reset"], 0)

    def test_over_the_bound_of_the_far_gateway(self):
        """The near gateway knows this limit of its peer."""
        done = self.over_the_bound(concentrator={"max-connections": BOUND})
        self.assertEqual(done["reset"], 0)

    def test_beyond_the_ration(self):
        """With the default limits: the near gateway respects the far one's limit, so the far one refuses none."""
        ration = {"new-streams-per-peer": 512}
        self.configure(edge=ration, concentrator=ration)
        done = self.burst_beside_pings()
        near = self.figures(self.lab.edge_gateway)
        peer = self.lab.gateway.status()["peers"][0]
        print(f"{near['accepted']} in the stream lane, {near['rejected']} and {peer['streams_rejected']} turned "
              "away")
        self.assert_whole(done)
        self.assertEqual(done["reset"], 0)
        self.assertEqual(peer["streams_rejected"], 0)
        self.assertGreater(near["accepted"], 0.9 * 1024)
        self.assertLess(near["accepted"], 1024 + 256 * (done["seconds"] + 5))
        self.assert_all_over()

    def test_while_the_gateway_does_not_run(self):
        """When the near gateway runs again, the kernel's queue has more connections than may wait for a peer."""
        self.configure(edge={"max-streams-per-peer": BOUND}, concentrator={"max-streams-per-peer": BOUND})
        process = self.lab.edge_gateway.process
        done = {}
        other = threading.Thread(target=lambda: done.update(self.burst(at_once=4 * BOUND)), daemon=True)
        process.send_signal(signal.SIGSTOP)
        try:
            other.start()
            self.eventually(lambda: self.queued() > WAITING + BOUND, "the kernel's queue to grow")
        finally:
            process.send_signal(signal.SIGCONT)
            other.join()
        near = self.figures(self.lab.edge_gateway)
        print(f"{near['accepted']} in the stream lane, {near['rejected']} turned away")
        self.assert_whole(done)
        self.assertEqual(done["reset"], 0)
        self.assert_all_over()

    def queued(self):
        """Connections that the kernel has accepted but the near gateway has not."""
        return max(int(line.split()[1]) for line in self.lab.edge.run("ss", "-Hltn").splitlines())


if __name__ == "__main__":
    unittest.main()
