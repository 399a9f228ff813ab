"""The judges of router.2 and router.2b: what leaves in clear must not pass for something that may."""

import ipaddress
import itertools
import random
import socket
import struct
import types
import unittest
from unittest import mock

from targets import MISSING, _leak_events, _leak_lab, router_leaks
from targets._leak_lab import (ELSEWHERE, ENDPOINT, LEAK, MARKER, OTHER_NAME, OTHER_REPLY, REPLY, RESOLVER, STRANGER,
                               TUNNEL)

WIFI, LTE = "10.0.0.1", "10.0.1.1"
WIFI6 = "fd01::1"
NETWORKS = {"wifi0": ["10.0.0.0/24", "fd01::/64"], "lte0": ["10.0.1.0/24", "fd01:0:0:1::/64"]}
HUB, HUB6 = _leak_lab.PUBLIC


def ip(source, target, protocol, payload, hops=64):
    source, target = ipaddress.ip_address(source).packed, ipaddress.ip_address(target).packed
    if len(source) == 4:
        return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, hops, protocol, 0) + source + target + payload
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, hops) + source + target + payload


def udp(source, target, ports, payload=b"x"):
    return ip(source, target, socket.IPPROTO_UDP, struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload)


def query(name):
    return bytes(12) + b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0\0\1\0\1"


class Judge(unittest.TestCase):
    def kind(self, packet, device="wifi0"):
        ethertype = _leak_lab.IPV4 if packet[0] >> 4 == 4 else _leak_lab.IPV6
        return _leak_lab.Judge(NETWORKS).kind(device, ethertype, packet)[0]

    def test_the_tunnel(self):
        self.assertEqual(self.kind(udp(WIFI, HUB, (40000, 4433))), TUNNEL)
        self.assertEqual(self.kind(udp(WIFI6, HUB6, (40000, 4433))), TUNNEL)
        for packet in (udp(WIFI, HUB, (40000, 4434)), udp("192.168.10.2", HUB, (40000, 4433)),
                       udp(WIFI, ELSEWHERE[0], (40000, 4433)), udp(WIFI, HUB, (40000, 4433), MARKER)):
            self.assertEqual(self.kind(packet), LEAK)

    def test_what_is_needed_on_the_link(self):
        self.assertEqual(_leak_lab.Judge(NETWORKS).kind("wifi0", _leak_lab.ARP, b"")[0], "ARP")
        self.assertEqual(_leak_lab.Judge(NETWORKS).kind("wifi0", 0x88CC, b"")[0], LEAK)
        solicitation = bytes([135]) + bytes(23)
        self.assertEqual(self.kind(ip("fe80::1", "ff02::1:ff00:1", 58, solicitation, 255)), "neighbour discovery")
        self.assertEqual(self.kind(ip("fe80::1", "2001:db8::9", 58, solicitation, 64)), LEAK)
        report = bytes([58, 0, 5, 2, 0, 0, 1, 0, 143]) + bytes(19)
        self.assertEqual(self.kind(ip("fe80::1", "ff02::16", 0, report, 1)), "multicast listener")
        self.assertEqual(self.kind(udp(WIFI, "10.0.0.2", (68, 67))), "DHCP")
        self.assertEqual(self.kind(udp(WIFI, "10.0.0.2", (68, 68))), LEAK)

    def test_names(self):
        self.assertEqual(self.kind(udp(WIFI, RESOLVER, (4000, 53), query(ENDPOINT))), "DNS of the endpoint")
        self.assertEqual(self.kind(udp(WIFI, RESOLVER, (4000, 53), query(OTHER_NAME))), LEAK)
        self.assertEqual(self.kind(udp(WIFI, ELSEWHERE[0], (4000, 53), query(ENDPOINT))), LEAK)

    def test_portal_probes(self):
        def syn(source, target, port):
            return ip(source, target, socket.IPPROTO_TCP, struct.pack("!HH", 40000, port) + bytes(16))

        self.assertEqual(self.kind(syn(WIFI, "192.0.2.1", 80)), "portal probe")
        self.assertEqual(self.kind(syn(WIFI6, "3fff::1", 80)), "portal probe")
        for packet in (syn("192.168.10.2", "192.0.2.1", 80), syn(WIFI, "192.0.2.1", 443), syn(WIFI, "192.0.2.2", 80),
                       syn(WIFI, ELSEWHERE[0], 80)):
            self.assertEqual(self.kind(packet), LEAK)
        self.assertEqual(self.kind(syn(WIFI, "192.0.2.1", 80), "lte0"), LEAK)

    def test_replies(self):
        answer = udp(WIFI, STRANGER[0], (_leak_lab.ANSWERING, 50000))
        self.assertEqual(self.kind(answer), REPLY)
        self.assertEqual(self.kind(answer, "lte0"), OTHER_REPLY)
        self.assertEqual(self.kind(udp(WIFI, STRANGER[0], (2223, 50000))), LEAK)
        self.assertEqual(self.kind(udp("192.168.10.2", STRANGER[0], (_leak_lab.ANSWERING, 50000))), LEAK)
        self.assertEqual(self.kind(udp(WIFI, ELSEWHERE[0], (_leak_lab.ANSWERING, 50000))), LEAK)

    def test_errors_are_replies_to_what_came_from_there(self):
        def error(about, to=HUB):
            return ip(WIFI, to, socket.IPPROTO_ICMP, bytes([3, 3]) + bytes(6) + about)

        self.assertEqual(self.kind(error(udp(HUB, WIFI, (4433, 40000)))), REPLY)
        self.assertEqual(self.kind(error(udp(ELSEWHERE[0], WIFI, (4433, 40000)))), LEAK)
        self.assertEqual(self.kind(error(udp(HUB, WIFI, (4433, 40000)), ELSEWHERE[0])), LEAK)
        self.assertEqual(self.kind(ip(WIFI, HUB, socket.IPPROTO_ICMP, bytes([8, 0]) + bytes(30))), LEAK)

    def test_connections(self):
        syn = struct.pack("!HHIIBBHHH", 40000, 443, 0, 0, 0x50, 2, 0, 0, 0)
        for source in (WIFI, "192.168.10.2"):
            self.assertEqual(self.kind(ip(source, ELSEWHERE[0], socket.IPPROTO_TCP, syn)), LEAK)


class Events(unittest.TestCase):
    def world(self):
        return types.SimpleNamespace(choose=random.Random(1), running=False)

    def test_all_of_them_happen_where_they_can(self):
        world, seen = self.world(), set()
        for each in _leak_events.sequence(world, 200):
            self.assertIn(each.running, (None, world.running))
            seen.add(each.name)
            if each.name in ("boot", "start"):
                world.running = True
            elif each.name in ("stop", "kill -9"):
                world.running = False
        self.assertEqual(seen, {each.name for each in _leak_events.EVENTS})

    def test_leaks_are_told_with_their_event(self):
        began = [router_leaks.Began(0.0, "boot", False), router_leaks.Began(2.0, "stop", True, "x")]
        text = "IPv4 UDP from 192.168.10.2 to 198.51.100.1 port 7777"
        rows = router_leaks.told([(1.5, "wifi0", text), (2.5, "wifi0", text), (2.75, "wifi0", text)], began,
                                 ["192.168.10.2"])
        self.assertEqual([(row["event"], row["count"], row["from s"], row["until s"]) for row in rows],
                         [("stop", 2, 0.5, 0.75), ("boot", 1, 1.5, 1.5)])
        self.assertEqual([row["of"] for row in rows], [{"LAN host IPv4": 2}, {"LAN host IPv4": 1}])
        self.assertEqual(rows[0]["packets"], {f"wifi0: {text}": 2})

    def test_too_few_events_or_a_sender_that_stands_still(self):
        sender = types.SimpleNamespace(rounds=0)
        world = types.SimpleNamespace(choose=random.Random(1), running=True, variant={},
                                      place=types.SimpleNamespace(senders=[sender]))
        event = _leak_events.Event("nothing", lambda _: None, None)
        for grows, missing in ((11, False), (0, True)):
            detail, began = {}, []

            def happen(_, grows=grows):
                sender.rounds += grows

            with mock.patch.object(router_leaks, "sequence", lambda *_: [event._replace(happen=happen)] * 2):
                router_leaks.happen(world, 2, began, detail, dwell=(0, 0))
            self.assertEqual((len(began), MISSING in detail), (2, missing))


class WithoutWay(unittest.TestCase):
    def value(self, answers):
        return router_leaks.without_way([[at, good] for at, good in zip(itertools.count(), answers)], 1.5)

    def test_until_all_requests_are_answered(self):
        self.assertEqual(self.value([True, True, False, False, True, True]), 2.5)
        self.assertEqual(self.value([True, True, False, True, False, True]), 3.5)

    def test_no_way_or_a_hub_that_was_not_needed(self):
        for answers in ([True, True, False, False], [True] * 6, [False] * 6, [True, True, False, True, False]):
            self.assertIsNone(self.value(answers))


if __name__ == "__main__":
    unittest.main()
