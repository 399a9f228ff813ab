"""ICMP errors reach hosts behind a gateway and the gateway's own applications, with any reverse path filter: path MTU,
unreachable destinations, and the hops of a traceroute. No kernel settings are changed for this."""

import errno
import json
import re
import select
import socket
import time
import unittest

from lab import Link
from pair_case import V4, V6, PairCase

CLIENT = {V4: "192.168.10.2", V6: "fd00:0:0:10::2"}
EDGE_LAN = {V4: "192.168.10.1", V6: "fd00:0:0:10::1"}
NEAR = {V4: "10.255.0.2", V6: "fd00:0:0:ff::2"}  # on its device
HUB_LAN = {V4: "192.168.100.1", V6: "fd00:0:0:100::1"}
HUB = {V4: "10.255.0.1", V6: "fd00:0:0:ff::1"}
NOBODY = {V4: "10.255.0.77", V6: "fd00:0:0:ff::77"}  # in the tunnel's network, behind no peer
FILTERS = {"strict": 1, "loose": 2}
# The kernel has no reverse path filter for IPv6; firewalld adds one like this (IPv6_rpfilter).
IPV6_FILTER = ("add table ip6 rpfilter; add chain ip6 rpfilter in { type filter hook prerouting priority -290; }; "
               "add rule ip6 rpfilter in iifname braid0 fib saddr . iif oif missing drop")
ETHERNET_HEADER = 14
AT_ONCE = 3  # seconds: packets for a peer wait for one second; a connection without a refusal takes minutes
IP_MTU, IPV6_MTU = 14, 24  # linux/in.h, in6.h
SYN_SENT = 2  # net/tcp_states.h
PROBE_ALWAYS = 2  # IP_PMTUDISC_DO, IPV6_PMTUDISC_DO


class ErrorsCase(PairCase):
    LINKS = [Link("wifi", 100, 4), Link("lte", 100, 4)]

    def each(self, check, *gateways):
        """Calls check(V4) and check(V6) for each reverse path filter of the gateways. Uplinks have none, because
        answers may arrive on another uplink."""
        for name, value in FILTERS.items():
            for space in gateways:
                space.sysctl(net__ipv4__conf__braid0__rp_filter=value, net__ipv4__conf__lan0__rp_filter=value)
            for address in (V4, V6):
                with self.subTest(filter=name, address=address):
                    check(address)

    def inner_mtu(self):
        peers = json.loads(self.lab.edge_gateway.ctl("peers", "--json"))["peers"]
        return peers[0]["inner_mtu_bytes"]

    def learned(self, namespace, address, size=1472):
        """The MTU that a socket learns for the way to the address by sending packets that are too large."""
        six = ":" in address
        level, mtu = (socket.IPPROTO_IPV6, IPV6_MTU) if six else (socket.IPPROTO_IP, IP_MTU)
        discover = 23 if six else 10  # IPV6_MTU_DISCOVER, IP_MTU_DISCOVER

        def send():
            with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as end:
                end.setsockopt(level, discover, PROBE_ALWAYS)
                end.connect((address, 9))
                deadline = time.monotonic() + AT_ONCE
                while time.monotonic() < deadline:
                    try:
                        end.send(bytes(size - 20 * six))
                    except OSError as error:
                        if error.errno == errno.EMSGSIZE:
                            break
                    time.sleep(0.02)
                return end.getsockopt(level, mtu)

        for version in ("-4", "-6"):
            namespace.ip(version, "route", "flush", "cache")
        return namespace.inside(send)

    def refused(self, namespace, address):
        """The error that ends an attempt to connect, None if it does not end at once, or with whom it was connected.
        The kernel has been seen to call a socket writable whose SYN is not answered yet; this waits on then."""
        def connect():
            deadline = time.monotonic() + AT_ONCE
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as end:
                end.setblocking(False)
                error = end.connect_ex((address, 80))
                writable = select.poll()
                writable.register(end, select.POLLOUT)
                while error in (0, errno.EINPROGRESS) and time.monotonic() < deadline:
                    writable.poll(1000 * AT_ONCE)
                    error = end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    state = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
                    if error == 0 and state != SYN_SENT:
                        return f"TCP state {state}, from {end.getsockname()} to {end.getpeername()}"
                    time.sleep(0.01)
                return error or None

        return namespace.inside(connect)

    def hop(self, namespace, source, address, ttl):
        """The address that answers a packet with this hop limit."""
        out = namespace.run("ping", "-n", "-c", 1, "-t", ttl, "-W", 2, "-I", source, address, check=False)
        found = re.search(r"(?:From|bytes from) ([0-9a-f.:]+?):? ", out)
        return found[1] if found else None


class Errors(ErrorsCase):
    EDGE = {"device": {"mtu": 1500}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.edge.run("nft", IPV6_FILTER)

    def test_hosts_and_applications_learn_the_mtu(self):
        def check(address):
            mtu = self.inner_mtu()
            self.assertLess(mtu, 1500)
            for namespace in (self.lab.client, self.lab.edge):
                self.assertEqual(self.learned(namespace, address), mtu, namespace.name)

        self.each(check, self.lab.edge)

    def test_a_connection_to_nobody_fails_at_once(self):
        def check(address):
            for namespace in (self.lab.client, self.lab.edge):
                self.assertEqual(self.refused(namespace, NOBODY[address]), errno.ENETUNREACH, namespace.name)

        self.each(check, self.lab.edge)

    def test_a_connection_to_a_peer_that_is_away_fails_at_once(self):
        def check(address):
            for namespace in (self.lab.client, self.lab.edge):
                self.assertEqual(self.refused(namespace, address), errno.EHOSTUNREACH, namespace.name)

        self.lab.gateway.stop()
        try:
            self.eventually(lambda: not self.lab.edge_gateway.status()["peers"][0]["up"], "the peer is down")
            self.each(check, self.lab.edge)
        finally:
            self.lab.gateway.start()
            self.lab.edge_gateway.wait_up(subflows=2)

    def test_a_trace_shows_every_hop(self):
        def check(address):
            client = CLIENT[address]
            for namespace, source, *hops in (
                    (self.lab.client, client, EDGE_LAN[address], HUB[address], address),
                    (self.lab.server, address, HUB_LAN[address], NEAR[address], client),
                    (self.lab.edge, NEAR[address], HUB[address], address)):
                seen = [self.hop(namespace, source, hops[-1], ttl) for ttl in range(1, len(hops) + 1)]
                self.assertEqual(seen, hops, namespace.name)

        self.each(check, self.lab.edge, self.lab.concentrator)


class OnATapDevice(ErrorsCase):
    """Applications on the gateways themselves, whose device is in no bridge."""

    MODE = "tap"
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()
        for gateway, own in ((cls.lab.gateway, HUB), (cls.lab.edge_gateway, NEAR)):
            gateway.config["device"].pop("bridge")
            gateway.config["device"]["addresses"] = [f"{own[V4]}/24", f"{own[V6]}/64"]
            gateway.start()
        cls.lab.edge_gateway.wait_up(subflows=2)

    def test_applications_learn_the_mtu(self):
        def check(address):
            self.assertEqual(self.learned(self.lab.edge, HUB[address]), self.inner_mtu() - ETHERNET_HEADER)

        self.each(check, self.lab.edge)


if __name__ == "__main__":
    unittest.main()
