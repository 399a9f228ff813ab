"""Proactive recovery between real gateways: what is sent, decoded, reported and traced, and for which flows."""

import contextlib
import hashlib
import json
import socket
import subprocess
import time
import unittest

from lab import Link
from pair_case import V4, PairCase

GOOD, BAD = Link("good", 50, 20), Link("bad", 50, 20, 0.03)
RESPONSE_BYTES, RESPONSES = 20_000, 80


def recovery(gateway):
    """`braidctl recovery --json` of the only peer."""
    return json.loads(gateway.ctl("recovery", "--json"))["peers"][0]


def total(peer, *counters):
    return sum(subflow[counter] for subflow in peer["subflows"] for counter in counters)


class RecoveryCase(PairCase):
    LINKS = [GOOD, BAD]

    def small_responses(self):
        """Many small responses, one after the other over one connection, all of which must be correct."""
        content = (self.lab.directory / "nginx" / "files" / self.file(RESPONSE_BYTES)[1:]).read_bytes()
        url = self.url(f"/{RESPONSE_BYTES}?[1-{RESPONSES}]")
        done = subprocess.run(self.lab.client.words("curl", "-sSf", "-w", "%{stderr}%{num_connects}", url),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
                              timeout=60)
        self.assertEqual(hashlib.sha256(done.stdout).hexdigest(), hashlib.sha256(content * RESPONSES).hexdigest())
        self.assertEqual(done.stderr.decode(), "1" + "0" * (RESPONSES - 1), "one TCP connection")

    def settle(self):
        """Waits until everything sent is acknowledged."""
        looks = []

        def quiet():
            looks.append(sum(total(recovery(gateway), "in_flight_bytes") for gateway in self.lab.gateways()))
            return looks[-3:] == [0, 0, 0]  # a gateway may have to answer the last datagram it receives

        self.eventually(quiet, "nothing is under way")

    def reload(self, **changes):
        for gateway in self.lab.gateways():
            gateway.config["recovery"].update(changes)
            gateway.write_config()
            gateway.ctl("reload")


class Cofuso(RecoveryCase):
    EDGE = CONCENTRATOR = {"recovery": {"policy": "cofuso", "m-max": 3}}

    def trace(self, gateway):
        """The events of a gateway's trace as (time, name, data). Every line must be complete and in order."""
        lines = self.trace_file(gateway).read_text(encoding="ascii").splitlines()
        events = []
        for number, line in enumerate(lines):
            event = json.loads(line)
            self.assertEqual(list(event), ["time", "name", "data"], line)
            self.assertEqual("session" in event["data"], number > 0, line)
            events.append((event["time"], event["name"].removeprefix("recovery:"), event["data"]))
        self.assertEqual(events[0][1], "trace_started")
        self.assertLess(abs(events[0][2]["unix_ms"] / 1000 - time.time()), 60)
        self.assertEqual(events, sorted(events, key=lambda event: event[0]))
        return events

    def trace_file(self, gateway):
        return self.lab.directory / f"{gateway.name}.trace"

    def test_parities_are_sent_decoded_and_traced(self):
        sender, receiver = self.lab.gateway, self.lab.edge_gateway
        self.reload(policy="cofuso")
        before_sent, before_received = recovery(sender), recovery(receiver)
        for gateway in (sender, receiver):
            gateway.ctl("trace", "on", self.trace_file(gateway))
        self.small_responses()
        self.settle()
        for gateway in (sender, receiver):
            self.assertIn("trace on", gateway.ctl("recovery"))
            gateway.ctl("trace", "off")
        sent, received = recovery(sender), recovery(receiver)
        parities = total(sent, "parities") - total(before_sent, "parities")
        decoded = received["packets_decoded"] - before_received["packets_decoded"]
        self.assertGreater(parities, 0)
        self.assertGreater(decoded, 0)
        self.assertEqual(sent["recovery"], "cofuso")
        self.assertLessEqual(total(sent, "decoded_packets"), received["packets_decoded"])
        self.assertLessEqual(received["parities_received"], total(sent, "parities"))

        events = self.trace(sender)
        named = [data for _, name, data in events if name == "parity_sent"]
        self.assertEqual(len(named), parities)
        for data in named:
            self.assertTrue(0 <= data["index"] < data["m"] <= 3 and 1 <= data["k"] <= 128, data)
        told = sum(1 for _, name, _ in events if name == "packet_recovered")
        self.assertGreater(told, 0)
        self.assertEqual(told, total(sent, "decoded_packets") - total(before_sent, "decoded_packets"))
        given_back = [(data["session"], data["subflow"], data["packet_number"])
                      for _, name, data in self.trace(receiver) if name == "block_decoded"]
        self.assertEqual(len(given_back), decoded)
        self.assertEqual(len(set(given_back)), decoded, "each packet once")

    def test_reload_to_none_stops_protection(self):
        gateways = self.lab.gateways()
        self.reload(policy="cofuso")
        self.small_responses()
        self.reload(policy="none")
        self.settle()
        counters = ("copies", "parities", "protection_bytes", "protected_packets")
        before = [total(recovery(gateway), *counters) for gateway in gateways]
        self.assertGreater(before[0], 0)
        self.small_responses()
        self.assertEqual([total(recovery(gateway), *counters) for gateway in gateways], before)
        self.assertEqual(recovery(gateways[0])["recovery"], "none")
        self.reload(policy="cofuso")
        self.small_responses()
        self.assertGreater(total(recovery(gateways[0]), *counters), before[0])


class Classes(RecoveryCase):
    EDGE = CONCENTRATOR = {"recovery": {"policy": "redundant", "classes": [{"protocol": "udp", "policy": "none"}]}}
    DATAGRAMS, AT_ONCE = 300, 50

    def udp_echoes(self):
        """The number of datagrams that came back."""
        server = self.lab.server.inside(self._udp, (V4, 7000))
        client = self.lab.client.inside(self._udp, ("", 0))
        answers = 0
        with server, client:
            for first in range(0, self.DATAGRAMS, self.AT_ONCE):
                for number in range(first, first + self.AT_ONCE):
                    client.sendto(number.to_bytes(2, "big") * 300, (V4, 7000))
                with contextlib.suppress(TimeoutError):
                    for _ in range(self.AT_ONCE):
                        server.sendto(*server.recvfrom(2048))
                with contextlib.suppress(TimeoutError):
                    for _ in range(self.AT_ONCE):
                        client.recv(2048)
                        answers += 1
        return answers

    @staticmethod
    def _udp(address):
        handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        handle.bind(address)
        handle.settimeout(0.2)
        return handle

    def test_a_class_without_protection_gets_no_copies(self):
        gateways = self.lab.gateways()
        before = [total(recovery(gateway), "copies", "parities") for gateway in gateways]
        self.assertGreater(self.udp_echoes(), self.DATAGRAMS * 0.8)
        self.assertEqual([total(recovery(gateway), "copies", "parities") for gateway in gateways], before)
        sent = total(recovery(gateways[0]), "sent_packets")
        self.small_responses()
        after = recovery(gateways[0])
        copies = total(after, "copies", "parities") - before[0]
        self.assertGreater(copies, 0.3 * (total(after, "sent_packets") - sent))
        self.assertEqual(total(after, "parities"), 0)


if __name__ == "__main__":
    unittest.main()
