"""`streams.connect: first`: a client's connection is accepted when its server has accepted, and its refusal is the
client's. Real kernels."""

import concurrent.futures
import contextlib
import errno
import random
import re
import select
import socket
import struct
import threading
import time
import unittest

from lab import Link
from lab.services import HTTP_PORT
from pair_case import V4, V6, PairCase
from streams_test import (ADDRESSES, CLIENT, MARKED, PACKETS, PORT, connect, connect_from, listen, port_is_free,
                          receive, redirects, rest, steered)

FIRST = {"streams": {"enabled": "on", "connect": "first", "new-streams-per-peer": 2048,
                     "match": [{"ports": 80}, {"ports": "8000-8199"}]}}
CLOSED = 8081
ROUND_TRIP = 0.02  # of the faster link, in seconds
NOBODY = {V4: "192.168.100.77", V6: "fd00:0:0:100::77"}  # in the server's network, and nobody has it
MOST = 1024  # PendingConnects::kMost
ETH_P_ALL, SYN = 3, 2


def refusal(namespace, address, port, timeout=10):
    """(errno, seconds) with which connect() fails; errno None: it did not."""
    began = time.monotonic()
    try:
        with connect(namespace, address, port, timeout):
            return None, time.monotonic() - began
    except TimeoutError as error:
        return error.errno or "timeout", time.monotonic() - began
    except OSError as error:
        return error.errno, time.monotonic() - began


def scan(namespace, address, ports):
    """{port: errno of connect(), 0 for an open one}, all at the same time."""
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        done = {port: pool.submit(refusal, namespace, address, port) for port in ports}
        return {port: each.result()[0] or 0 for port, each in done.items()}


def syn(source, destination, sport, dport):
    """An IPv4 packet that begins a TCP connection."""
    ends = socket.inet_aton(source) + socket.inet_aton(destination)

    def checksum(data):
        total = sum(struct.unpack(f"!{len(data) // 2}H", data))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        return ~total & 0xffff

    tcp = struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 5 << 4, 2, 1000, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", checksum(ends + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + ends + tcp


def first_bytes(end):
    """None: the connection was reset."""
    try:
        return end.recv(100)
    except ConnectionResetError:
        return None


class First(PairCase):
    LINKS = [Link("wifi", 50, ROUND_TRIP * 1000), Link("lte", 30, 60)]
    EDGE = CONCENTRATOR = FIRST

    def setUp(self):
        self.edge, self.server, self.client = self.lab.edge, self.lab.server, self.lab.client
        for gateway in self.lab.gateways():
            if gateway.process is None or gateway.process.poll() is not None:
                gateway.start()
        self.lab.edge_gateway.wait_up(subflows=2)
        self.wait_taking()

    def tearDown(self):
        self.eventually(lambda: self.figures()["connecting"] == 0, "no connection waits", timeout=30)

    def wait_taking(self):
        for gateway in self.lab.gateways():
            self.eventually(lambda gateway=gateway: gateway.status()["streams"]["intercepting"],
                            f"{gateway.name} takes connections over")

    def figures(self, gateway=None):
        return (gateway or self.lab.edge_gateway).status()["streams"]

    def drop(self, words, namespace=None):
        """The namespace drops what matches: until the test ends, or until what is returned is called."""
        space = namespace or self.server
        space.run("nft", "add table inet stop; add chain inet stop in { type filter hook input priority 0; }; "
                  f"add rule inet stop in {words}")
        undo = contextlib.ExitStack()
        undo.callback(space.run, "nft", "delete table inet stop")
        self.addCleanup(undo.close)
        return undo.close

    def use(self, gateway, **settings):
        """Other settings for `streams`, until the test ends."""
        gateway.config["streams"] = FIRST["streams"] | settings
        self.addCleanup(self.restore, gateway)
        gateway.reload()

    @staticmethod
    def restore(gateway):
        gateway.config["streams"] = FIRST["streams"]
        gateway.restart()

    def pair(self, address=V4, port=PORT):
        """(client, server): both ends of a connection."""
        with listen(self.server, address, port) as listener:
            client = connect(self.client, address, port)
            server, self.peer_name = listener.accept()
            server.settimeout(10)
            return client, server

    # ---- servers that answer

    def test_a_server_is_reached_and_speaks_first(self):
        for address in ADDRESSES:
            with self.subTest(address=address):
                before = self.figures()
                client, server = self.pair(address)
                with client, server:
                    self.assertEqual(self.peer_name[:2], (CLIENT[address], client.getsockname()[1]))
                    self.assertEqual(client.getpeername()[:2], (address, PORT))
                    server.sendall(b"welcome")
                    self.assertEqual(receive(client, 7), b"welcome")
                    client.sendall(b"question")
                    self.assertEqual(receive(server, 8), b"question")
                    server.shutdown(socket.SHUT_WR)
                    self.assertEqual(rest(client), ("end", 0))
                self.assertEqual(self.figures()["accepted"], before["accepted"] + 1)

    def test_connect_takes_one_round_trip(self):
        def experiment():
            began = time.monotonic()
            client, server = self.pair(V4)
            took = time.monotonic() - began
            client.close()
            server.close()
            self.assertGreater(took, ROUND_TRIP * 0.9, "the server was asked")
            self.in_time(took < 2 * ROUND_TRIP, f"connect() took {took * 1000:.1f} ms")

        self.attempts(experiment)

    def test_the_other_direction(self):
        before = self.figures(self.lab.gateway)
        with listen(self.client, CLIENT[V4]) as listener, connect(self.server, CLIENT[V4]) as client:
            with listener.accept()[0] as end:
                client.sendall(b"x" * 100_000)
                self.assertEqual(len(receive(end, 100_000)), 100_000)
        self.assertEqual(refusal(self.server, CLIENT[V4], CLOSED)[0], errno.ECONNREFUSED)
        self.assertEqual(self.figures(self.lab.gateway)["accepted"], before["accepted"] + 1)

    def test_downloads_are_whole(self):
        before = self.figures()
        for address in ADDRESSES:
            for size in (0, 100_000, 5_000_000):
                self.verify(self.download(self.file(size), address))
        self.assertEqual(self.figures()["accepted"], before["accepted"] + 6)

    # ---- servers that do not

    def test_a_closed_port_is_refused_within_a_round_trip(self):
        for address in ADDRESSES:
            with self.subTest(address=address):
                def experiment(address=address):
                    before = self.figures()
                    error, took = refusal(self.client, address, CLOSED)
                    self.assertEqual(error, errno.ECONNREFUSED)
                    self.assertEqual(self.figures()["declined"], before["declined"] + 1)
                    self.assertEqual(self.figures()["accepted"], before["accepted"])
                    self.in_time(took < 2 * ROUND_TRIP, f"it took {took * 1000:.1f} ms")

                self.attempts(experiment)

    def test_what_a_router_says_is_unreachable_is(self):
        self.server.sysctl(net__ipv4__icmp_ratelimit=0, net__ipv6__icmp__ratelimit=0)
        self.drop("tcp dport 8088 reject with icmpx type host-unreachable")
        for address in ADDRESSES:
            with self.subTest(address=address):
                # The far gateway knows the server's MAC address, so that the error arrives within its connect().
                self.lab.concentrator.run("ping", "-c", "1", "-W", "2", address)

                def experiment(address=address):
                    for _ in range(25):
                        error, took = refusal(self.client, address, 8088)
                        self.assertEqual(error, errno.EHOSTUNREACH, f"after {took:.3f} s")
                        self.in_time(took < 0.5, f"it took {took:.2f} s")

                self.attempts(experiment)

    def test_an_address_that_nobody_has_is_unreachable(self):
        for address in NOBODY.values():
            with self.subTest(address=address):
                error, took = refusal(self.client, address, PORT)
                self.assertEqual(error, errno.EHOSTUNREACH)
                self.assertLess(took, 8, "the far gateway's kernel asks for its MAC address for 3 s")

    def test_a_server_that_says_nothing_is_not_accepted(self):
        self.drop("tcp dport 8087 drop")
        for address in ADDRESSES:
            with self.subTest(address=address):
                before = self.figures()
                self.assertEqual(refusal(self.client, address, 8087, timeout=3)[0], "timeout")
                self.assertEqual(self.figures()["accepted"], before["accepted"])

    def test_what_the_host_redirects_goes_there(self):
        redirects(self)

    def test_a_scan_finds_the_open_ports(self):
        """A hundred ports in the stream lane, of which three are open."""
        ports, is_open = range(8100, 8200), (8107, 8150, 8199)
        for address in ADDRESSES:
            with self.subTest(address=address), contextlib.ExitStack() as listeners:
                for port in is_open:
                    listeners.enter_context(listen(self.server, address, port))
                before = self.figures()
                found = scan(self.client, address, ports)
                self.assertEqual({port: error for port, error in found.items() if error != errno.ECONNREFUSED},
                                 dict.fromkeys(is_open, 0))
                self.assertEqual(self.figures()["accepted"], before["accepted"] + len(is_open))

    def test_a_client_with_a_dead_ipv6_address_takes_ipv4(self):
        """curl tries IPv6 first, and IPv4 200 ms later if that does not answer (RFC 8305)."""
        self.drop(f"ip6 daddr {V6} tcp dport {HTTP_PORT} drop")
        path = self.file(1000)
        out = self.client.run("curl", "-s", "-o", "/dev/null", "-m", "10", "-w", "%{remote_ip} %{time_total}",
                              "--resolve", f"server.example:{HTTP_PORT}:{V6},{V4}", f"http://server.example{path}")
        address, seconds = out.split()
        self.assertEqual(address, V4)
        self.assertLess(float(seconds), 3)

    def test_a_port_that_is_used_again_at_once_is_taken_over_again(self):
        """The server closes first, so the gateway's own socket of the old connection waits (TIME_WAIT)."""
        for address in ADDRESSES:
            before, took = self.figures(), []
            with self.subTest(address=address), listen(self.server, address) as listener:
                for _ in range(3):
                    client, seconds = self.client.inside(connect_from, 40404, address)
                    took.append(seconds)
                    with client, listener.accept()[0] as server:
                        server.shutdown(socket.SHUT_WR)
                        self.assertEqual(rest(client), ("end", 0))
                    port_is_free(self, 40404)
                self.assertEqual(self.figures()["accepted"], before["accepted"] + 3)
                self.assertLess(max(took), 0.8, "no SYN was sent again")

    def test_a_late_copy_of_a_syn_begins_nothing(self):
        """The very packet with which a connection has begun comes once more by the LAN: while the connection is open,
        and when it has ended."""
        def opened():
            return self.lab.edge_gateway.status()["peers"][0]["streams_opened"]

        tap, raw = (self.client.inside(socket.socket, *kind) for kind in (
            (socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)),
            (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)))
        with tap, raw, listen(self.server, V4) as listener:
            tap.settimeout(5)
            before = opened()
            client = connect(self.client, V4)
            server = listener.accept()[0]
            packet = b""
            while packet[9:10] != b"\x06" or packet[16:20] != socket.inet_aton(V4) or packet[33] != SYN:
                packet = tap.recv(2000)

            def come_again():
                raw.sendto(packet, (V4, 0))
                time.sleep(0.5)  # the copy's connection would be there
                self.assertEqual(opened(), before + 1)

            with client, server:
                time.sleep(0.5)
                come_again()
                client.sendall(b"x")
                self.assertEqual(receive(server, 1), b"x")
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(rest(server), ("end", 0))
            self.eventually(lambda: self.figures()["open"] == 0, "the connection ends")
            come_again()
            listener.settimeout(0.2)
            self.assertRaises(TimeoutError, listener.accept)

    # ---- with losses, and many

    def test_a_server_that_answers_late_is_one_connection(self):
        """Its host is silent for two seconds. The client repeats its SYN meanwhile."""
        for address in ADDRESSES:
            with self.subTest(address=address):
                undo = self.drop(f"tcp dport {PORT} drop")
                before = self.lab.edge_gateway.status()["peers"][0]["streams_opened"]
                timer = threading.Timer(2, undo)
                timer.start()
                client, server = self.pair(address)
                with client, server:
                    client.sendall(b"x")
                    self.assertEqual(receive(server, 1), b"x")
                timer.join()
                self.assertEqual(self.lab.edge_gateway.status()["peers"][0]["streams_opened"], before + 1)

    def test_two_hundred_at_once(self):
        count, size = 200, 2000
        for address in ADDRESSES:
            with self.subTest(address=address), listen(self.server, address) as listener:
                def serve(listener=listener):
                    for _ in range(count):
                        end, _ = listener.accept()
                        with end:
                            end.settimeout(20)
                            end.sendall(receive(end, size))

                server = threading.Thread(target=serve, daemon=True)
                server.start()
                before = self.figures()

                def ask(number, address=address):
                    payload = number.to_bytes(4, "big") * (size // 4)
                    with connect(self.client, address, timeout=20) as client:
                        client.sendall(payload)
                        return receive(client, size) == payload

                with concurrent.futures.ThreadPoolExecutor(50) as pool:
                    self.assertEqual(list(pool.map(ask, range(count))), [True] * count)
                server.join(10)
                self.assertEqual(self.figures()["accepted"], before["accepted"] + count)
        self.eventually(lambda: self.figures()["open"] == 0, "all end")

    def test_a_flood_of_syns_is_bounded_and_others_are_reached(self):
        """From hosts that do not exist, to a server that is silent."""
        self.drop("tcp dport 8086 drop")
        stop, most = threading.Event(), []

        def flood():
            dice = random.Random(1)
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            with raw:
                while not stop.is_set():
                    for _ in range(25):
                        raw.sendto(syn(f"192.168.10.{dice.randrange(10, 250)}", V4, dice.randrange(1024, 60000), 8086),
                                   (V4, 0))
                    time.sleep(0.005)

        thread = threading.Thread(target=self.client.inside, args=(flood,), daemon=True)
        thread.start()
        try:
            for _ in range(10):
                time.sleep(0.2)
                most.append(self.figures()["connecting"])
                client, server = self.pair(V4)
                with client, server:
                    client.sendall(b"x")
                    self.assertEqual(receive(server, 1), b"x")
        finally:
            stop.set()
            thread.join()
        self.assertGreater(max(most), MOST / 2)
        self.assertLessEqual(max(most), MOST)
        self.eventually(lambda: self.figures()["connecting"] == 0, "nobody repeats a SYN", timeout=15)

    # ---- the host

    def test_nothing_is_left_in_the_firewall(self):
        def remembered():
            return self.edge.run("nft", "list", "set", "inet", "braid-braid0", "passed4")

        for port in range(8000, 8020):
            refusal(self.client, V4, port)
        self.assertIn(f". {V4} . 8019", remembered())
        self.eventually(lambda: V4 not in remembered(), "the kernel to forget them", timeout=5)

    def test_strict_reverse_path_filters_stop_nothing(self):
        names = [f"net__ipv4__conf__{name}__rp_filter" for name in ("all", "lo", "lan0", "braid0")]
        for name in names:
            self.edge.sysctl(**{name: 1})
            self.addCleanup(self.edge.sysctl, **{name: 0})
        client, server = self.pair(V4)
        with client, server:
            client.sendall(b"x")
            self.assertEqual(receive(server, 1), b"x")
        self.assertEqual(refusal(self.client, V4, CLOSED)[0], errno.ECONNREFUSED)

    def test_a_reload_changes_it(self):
        gateway = self.lab.edge_gateway
        self.use(gateway, connect="early")
        self.eventually(lambda: "passed4" not in self.edge.run("nft", "list", "ruleset"), "reloaded")
        with connect(self.client, V4, CLOSED) as client:
            self.assertEqual(rest(client), ("reset", 0))
        gateway.config["streams"] = FIRST["streams"]
        gateway.reload()
        self.eventually(lambda: "passed4" in self.edge.run("nft", "list", "ruleset"), "reloaded")
        self.eventually(lambda: refusal(self.client, V4, CLOSED)[0] == errno.ECONNREFUSED, "it is refused")

    def carries(self, address=V4, port=PORT):
        """A connection is made, without a SYN that is sent again, and carries bytes. Whether it was a stream."""
        before, began = self.figures()["accepted"], time.monotonic()
        client, server = self.pair(address, port)
        took = time.monotonic() - began
        with client, server:
            client.sendall(b"question")
            self.assertEqual(receive(server, 8), b"question")
            server.sendall(b"answer")
            self.assertEqual(receive(client, 6), b"answer")
        self.assertLess(took, 0.8, "no SYN was sent again")
        return self.figures()["accepted"] > before

    def test_a_family_that_lo_does_not_have_stays_packets(self):
        gateway = self.lab.edge_gateway

        def switch(off):
            gateway.stop()
            self.edge.sysctl(net__ipv6__conf__lo__disable_ipv6=int(off))
            gateway.start()
            gateway.wait_up(subflows=2)
            self.wait_taking()

        self.addCleanup(switch, False)
        switch(True)
        self.assertFalse(self.carries(V6))
        self.assertTrue(self.carries(V4))

    def test_a_lan_that_the_host_translates_before_the_device_stays_packets(self):
        self.edge.run("nft", "add table inet own; add chain inet own out { type nat hook postrouting priority 90; }; "
                      "add rule inet own out oifname braid0 masquerade")
        self.addCleanup(self.edge.run, "nft", "delete table inet own")
        self.assertFalse(self.carries())

    def test_what_another_program_sends_into_the_device_stays_packets(self):
        """By a rule before Braid's, which would take from the listener what is given back to it."""
        for name, rules in MARKED.items():
            for address in ADDRESSES:
                with self.subTest(name, address=address), steered(self.edge, rules, "dev braid0", address=address):
                    self.assertFalse(self.carries(address))

    def test_where_what_is_given_back_goes_into_the_device_connections_are_packets(self):
        """The host marks what its own programs send, and a rule for that mark leads into the device. The first client
        waits until it has sent its SYN again; the next ones do not."""
        self.addCleanup(self.restore, self.lab.edge_gateway)  # which forgets what it has found
        with steered(self.edge, [("mangle", "meta mark set 0x500")], "dev braid0", "route hook output"):
            with listen(self.server, V4) as listener, connect(self.client, V4) as client:
                client.sendall(b"x")
                ends = [listener.accept()[0]]
                while select.select(ends[-1:], [], [], 5)[0] and first_bytes(ends[-1]) != b"x":
                    ends.append(listener.accept()[0])
                for end in ends:
                    end.close()
            self.assertLess(len(ends), 3, "the gateway has asked once")
            self.assertFalse(self.carries())

    def test_with_when_down_direct_a_stream_is_not_marked_as_what_went_into_the_device(self):
        """The kernel is made to forget what is marked when the LAN's hosts take the host's own way."""
        gateway = self.lab.edge_gateway
        before = dict(gateway.config["device"])

        def restore():
            gateway.config["device"] = before
            gateway.restart()

        self.addCleanup(restore)
        gateway.config["device"] = before | {"when-down": "direct"}
        gateway.reload()
        self.eventually(lambda: "ct mark set" in self.edge.run("nft", "list", "table", "inet", "braid_nat-braid0",
                                                               check=False), "reloaded")
        ports = {PACKETS: False, PORT: True}
        self.edge.run("nft", "add table inet look; add chain inet look in { type filter hook prerouting priority 0; }")
        self.addCleanup(self.edge.run, "nft", "delete table inet look")
        for port in ports:
            self.edge.run("nft", f"add rule inet look in iifname lan0 tcp dport {port} "
                          "tcp flags & (syn | ack) == ack ct mark != 0 counter")
        for address in ADDRESSES:
            for port, is_stream in ports.items():
                with self.subTest(address=address, port=port):
                    self.assertEqual(self.carries(address, port), is_stream)
        packets, stream = re.findall(r"counter packets (\d+)", self.edge.run("nft", "list", "table", "inet", "look"))
        self.assertGreater(int(packets), 0)
        self.assertEqual(int(stream), 0)

    # ---- what no stream may reach

    def test_what_the_far_gateway_does_not_accept_crosses_as_packets_at_once(self):
        self.use(self.lab.gateway, accept=[{"network": V4, "ports": 8083}])
        self.addCleanup(self.restore, self.lab.edge_gateway)  # which forgets what was forbidden
        time.sleep(0.5)  # until it has read that
        before = self.figures(self.lab.gateway)
        for number, address in enumerate(ADDRESSES):
            with self.subTest(address=address):
                began = time.monotonic()
                client, server = self.pair(address, 8084)
                took = time.monotonic() - began
                with client, server:
                    client.sendall(b"as packets")
                    self.assertEqual(receive(server, 10), b"as packets")
                self.assertLess(took, 0.8, "no SYN was sent again")
                self.assertEqual(self.figures(self.lab.gateway)["ended_forbidden"],
                                 before["ended_forbidden"] + number + 1)


if __name__ == "__main__":
    unittest.main()
