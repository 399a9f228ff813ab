"""Routers beyond a peer's prefixes: their ICMP errors reach the hosts on the other side of the tunnel, so that a small
MTU behind the far gateway is no black hole and a traceroute shows every hop."""

import re
import socket
import struct
import time
import unittest

from lab import Wire
from lab.netns import join
from lab.packets import checksum
from pair_case import V4, V6, PairCase

NARROW = 1300  # bytes: the MTU between the two routers
PORT = 5001
BYTES = 2_000_000
TRANSIT = {"hub": ("172.31.0.0/24", "2001:db8:31::/64"), "edge": ("172.31.10.0/24", "2001:db8:3110::/64")}
BETWEEN = {"hub": ("172.31.1.0/24", "2001:db8:32::/64"), "edge": ("172.31.11.0/24", "2001:db8:3111::/64")}
FAR = {"hub": ("192.168.200.0/24", "fd00:0:0:200::/64"), "edge": ("192.168.210.0/24", "fd00:0:0:210::/64")}
IP_RECVERR, IPV6_RECVERR, IPV6_UNICAST_HOPS, MSG_ERRQUEUE = 11, 25, 16, 0x2000


def host(prefix, number):
    """An address of the prefix."""
    network = prefix.partition("/")[0]
    return f"{network}{number}" if ":" in prefix else f"{network[:-1]}{number}"


def sized(prefix, number):
    return f"{host(prefix, number)}/{prefix.partition('/')[2]}"


class RoutersBeyondAPeersPrefixes(PairCase):
    LINKS = [Wire("wire")]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lab = cls.lab
        cls.routers = {}  # the first one of each side
        cls.chains = {"hub": cls.chain(lab.concentrator, "hub"), "edge": cls.chain(lab.edge, "edge")}
        lab.make_gateways()
        for gateway, far in ((lab.edge_gateway, FAR["hub"]), (lab.gateway, FAR["edge"])):
            gateway.config["peers"][0]["prefixes"] += far
            gateway.config["device"]["routes"] += far
            gateway.start()
        lab.edge_gateway.wait_up()

    @classmethod
    def chain(cls, gateway, side):
        """gateway -- first router -- (NARROW) -- second router -- far host. Returns the far host and the addresses of
        the routers that a traceroute shows, by family."""
        first, second, far = (cls.lab.namespace(f"{side}{role}") for role in ("first", "second", "far"))
        cls.routers[side] = first
        places = [gateway, first, second, far]
        networks = [TRANSIT[side], BETWEEN[side], FAR[side]]
        for number, pair in enumerate(networks):
            near, beyond = places[number], places[number + 1]
            join(near, f"to{number}", beyond, f"from{number}")
            for space, device, address in ((near, f"to{number}", 1), (beyond, f"from{number}", 2)):
                space.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
                space.address(device, *(sized(prefix, address) for prefix in pair))
            for prefix, default in zip(pair, ("0.0.0.0/0", "::/0")):
                beyond.route(default, "via", host(prefix, 1))
        for space, device in ((first, "to1"), (second, "from1")):
            space.ip("link", "set", device, "mtu", NARROW)
        for number, space in enumerate((gateway, first)):
            for prefix, way in zip(FAR[side], networks[number]):
                space.route(prefix, "via", host(way, 2))
        hops = [[host(prefix, 2) for prefix in pair] for pair in (TRANSIT[side], BETWEEN[side])]
        return far, hops

    def each(self, check):
        """Calls check(near host, its address, side with the routers, family) for both directions and families."""
        for near, own, side in ((self.lab.client, self.lab.sites[0].client_address, "hub"),
                                (self.lab.server, (V4, V6), "edge")):
            for family in (0, 1):
                with self.subTest(beyond=side, family=("IPv4", "IPv6")[family]):
                    check(near, own[family], side, family)

    def uploaded(self, near, own, far, address):
        """How many bytes a TCP connection brings to the far host within 10 s, of BYTES."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET

        def listen():
            end = socket.socket(family)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end.bind((address, PORT))
            end.settimeout(5)
            end.listen()
            return end

        with far.inside(listen) as listener, near.inside(
                socket.create_connection, (address, PORT), 5, (own, 0)) as sender:
            receiver, _ = listener.accept()
            with receiver:
                sender.setblocking(False)
                receiver.setblocking(False)
                sent = got = 0
                deadline = time.monotonic() + 10
                while got < BYTES and time.monotonic() < deadline:
                    try:
                        sent += sender.send(bytes(min(65536, BYTES - sent))) if sent < BYTES else 0
                    except BlockingIOError:
                        pass
                    try:
                        got += len(receiver.recv(1 << 20))
                    except BlockingIOError:
                        time.sleep(0.005)
                return got

    def test_a_small_mtu_behind_the_far_gateway_is_no_black_hole(self):
        def check(near, own, side, family):
            far, _ = self.chains[side]
            self.assertEqual(self.uploaded(near, own, far, host(FAR[side][family], 2)), BYTES)
            way = near.ip("-6" if family else "-4", "route", "get", host(FAR[side][family], 2), "from", own)
            self.assertIn(f"mtu {NARROW}", way, "the host has learned it from the router")

        self.each(check)

    def hop(self, near, own, address, ttl):
        """Who answers a UDP probe with this hop limit, as traceroute sends it."""
        six = ":" in address

        def probe():
            with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as end:
                level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
                end.setsockopt(level, IPV6_RECVERR if six else IP_RECVERR, 1)
                end.setsockopt(level, IPV6_UNICAST_HOPS if six else socket.IP_TTL, ttl)
                end.bind((own, 0))
                end.connect((address, 33434 + ttl))
                end.send(bytes(32))
                deadline = time.monotonic() + 2
                while time.monotonic() < deadline:
                    try:
                        _, extra, _, _ = end.recvmsg(512, 512, MSG_ERRQUEUE)
                    except BlockingIOError:
                        time.sleep(0.01)
                        continue
                    data = extra[0][2]  # sock_extended_err of 16 bytes, then the sockaddr of who complains
                    offender = data[16 + 8:16 + 24] if six else data[16 + 4:16 + 8]
                    return socket.inet_ntop(socket.AF_INET6 if six else socket.AF_INET, offender)
                return None

        return near.inside(probe)

    def test_a_traceroute_shows_the_routers_behind_the_far_gateway(self):
        def check(near, own, side, family):
            address = host(FAR[side][family], 2)
            _, hops = self.chains[side]
            seen = [self.hop(near, own, address, ttl) for ttl in (3, 4, 5)]
            self.assertEqual(seen, [hops[0][family], hops[1][family], address])
            pings = near.run("ping", "-n", "-c", 1, "-t", 4, "-W", 2, "-I", own, address, check=False)
            self.assertEqual(re.findall(r"From (\S+?):? icmp_seq", pings), [hops[1][family]])

        self.each(check)

    def test_an_error_about_no_flow_does_not_pass(self):
        own, far = self.lab.sites[0].client_address[0], host(FAR["hub"][0], 2)
        quote = struct.pack("!BBHHHBBH4s4sHHHH", 0x45, 0, 100, 0, 0x4000, 9, 17, 0, socket.inet_aton(own),
                            socket.inet_aton(far), 1111, 2222, 80, 0)
        error = struct.pack("!BBHI", 11, 0, 0, 0) + quote
        error = error[:2] + struct.pack("!H", checksum(error)) + error[4:]

        def send():
            with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as end:
                for _ in range(10):
                    end.sendto(error, (own, 0))

        before = self.lab.edge_gateway.drops()["foreign_source"]
        heard = self.lab.client.counters()["Icmp.InTimeExcds"]
        self.routers["hub"].inside(send)
        self.eventually(lambda: self.lab.edge_gateway.drops()["foreign_source"] >= before + 10, "ten drops")
        self.assertEqual(self.lab.client.counters()["Icmp.InTimeExcds"], heard)


if __name__ == "__main__":
    unittest.main()
