"""Programs at the edge's host that steer packets by marks and rules of their own (tools/lab/neighbours.py): their
connections survive what Braid does, and their marks, rules and tables stay."""

import collections
import contextlib
import re
import signal
import socket
import unittest

from lab import Link
from lab.gateway import binary
from lab.neighbours import Mwan3, SecondBraid, Squid, Tailscale, Talk, WgQuick, prepare, take_advice
from pair_case import V4, V6, PairCase
from streams_test import IN_BRAIDS_BITS, MARKED, steered

IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75


class NeighbourCase(PairCase):
    LINKS = [Link("wifi", 100, 4), Link("lte", 100, 4)]
    GATEWAYS = False
    WHEN_DOWN = None
    STREAMS = "on"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        streams = {"streams": {"enabled": cls.STREAMS}}
        cls.lab.make_gateways(streams, streams)
        prepare(cls.lab, cls.WHEN_DOWN)
        cls.lab.gateway.start()

    def setUp(self):
        self.edge, self.gateway = self.lab.edge, self.lab.edge_gateway
        self.talks = []

    def tearDown(self):
        for talk in self.talks:
            talk.close()
        if self.gateway.process:
            self.gateway.stop()

    def tell(self):
        super().tell()
        for talk in self.talks:
            print(talk.told())

    def host(self):
        """Lines of rules, routes and packet filters, each with its count; without what the kernel adds by itself when
        it has checked an address."""
        lines = []
        for words in (("ip", "rule"), ("ip", "-6", "rule"), ("ip", "route", "show", "table", "all"),
                      ("ip", "-6", "route", "show", "table", "all"), ("nft", "-s", "list", "ruleset")):
            found = re.sub(r" expires \S+", "", self.edge.run(*words)).splitlines()
            lines += [line.strip() for line in found if not re.search(r"fe80::|ff00::/8", line)]
        return collections.Counter(lines)

    def look(self, conditions, right):
        """Counts what leaves with these conditions, and that for which `right` does not hold, until the test ends."""
        self.edge.run("nft", "add table inet seen; "
                      "add chain inet seen out { type filter hook postrouting priority 300; }; "
                      f"add rule inet seen out {conditions} {right} counter accept; "
                      f"add rule inet seen out {conditions} counter comment wrong")
        self.addCleanup(self.edge.run, "nft", "delete table inet seen")

    def seen(self):
        """(right, wrong) packets."""
        out = self.edge.run("nft", "list", "table", "inet", "seen")
        return [int(count) for count in re.findall(r"counter packets (\d+)", out)]

    def up(self):
        self.gateway.start()
        self.gateway.wait_up(subflows=2)
        self.eventually(lambda: self.gateway.status()["streams"]["intercepting"] == (self.STREAMS == "on"),
                        "connections are taken over, with streams")

    def reload(self):
        log = self.lab.log(self.gateway.name)
        count = log.read_text(errors="replace").count("configuration read again")
        self.gateway.reload()
        self.eventually(lambda: log.read_text(errors="replace").count("configuration read again") > count, "the reload")

    def kill(self):
        self.gateway.stop(signal.SIGKILL)
        self.up()

    def restart(self):
        self.gateway.stop()
        self.up()

    def talk(self, neighbour):
        self.talks += [Talk(f"{words[2]} {words[3]}", *words) for words in neighbour.talks()]

    def check(self, neighbour):
        for talk in self.talks:
            self.assertEqual(talk.breaks(), 0, talk.told())
            self.assertIsNone(neighbour.reachable(talk), talk.name)

    def passed(self):
        """What look() counted was right."""
        right, wrong = self.seen()
        self.assertGreater(right, 20)
        self.assertEqual(wrong, 0)


class Neighbours(NeighbourCase):
    def survives(self, neighbour, *more, ):
        """Connections from before the start and from while Braid runs go on, and what is the neighbour's stays."""
        own = self.host()
        if neighbour.NEEDS_THE_TUNNEL:
            self.up()
        self.talk(neighbour)
        self.check(neighbour)
        for act in (*([] if neighbour.NEEDS_THE_TUNNEL else [self.up]), self.reload, self.kill, self.restart, *more):
            with self.subTest(act.__name__):
                act()
                self.check(neighbour)
                self.assertEqual(own - self.host(), collections.Counter())
        for talk in self.talks:
            talk.close()
        self.talks.clear()
        self.talk(neighbour)
        self.check(neighbour)
        self.gateway.stop()
        self.assertEqual(self.host(), own)

    def test_mwan3(self):
        with Mwan3(self.lab) as neighbour:
            self.look(f"tcp dport {Mwan3.POLICY}", "oifname lte0 meta mark and 0x3f00 == 0x200")
            self.survives(neighbour)
            self.passed()

    def test_wg(self):
        """Its connections go on. Whether its own datagrams take the tunnel is open: wg-quick's rules come after
        Braid's, and wireguard-go goes on using the interface by which its peer's last datagram came."""
        with WgQuick(self.lab) as neighbour:
            self.survives(neighbour)

    def test_wg_past_the_tunnel(self):
        device = self.gateway.config["device"]
        device["bypass-marks"] = ["0xca6c"]
        self.addCleanup(device.pop, "bypass-marks")
        with WgQuick(self.lab) as neighbour:
            self.look(f"udp dport {WgQuick.PEER_PORT}", 'oifname { "wifi0", "lte0" } meta mark 0xca6c')
            self.survives(neighbour)
            self.passed()

    def test_tailscale(self):
        with Tailscale(self.lab) as neighbour:
            self.look(f"meta l4proto {{ tcp, udp }} th dport {{ {Tailscale.PEER_PORT}, 7001 }}",
                      'oifname { "wifi0", "lte0" } meta mark 0x80000')
            self.survives(neighbour)
            self.passed()

    def test_another_proxy(self):
        """Connections that squid has taken stay squid's, though they match `streams`."""
        with Squid(self.lab) as neighbour:
            self.survives(neighbour)

    def test_a_second_braid(self):
        with SecondBraid(self.lab) as neighbour:
            second = neighbour.gateways[1]

            def restart_of_the_second():
                second.restart()
                second.wait_up()

            self.survives(neighbour, restart_of_the_second)


class Proxies(NeighbourCase):
    """Transparent proxies (TPROXY) with a rule for their mark that has no priority, so that it comes after Braid's."""

    @staticmethod
    def make_transparent(end):
        if end.family == socket.AF_INET6:
            end.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        else:
            end.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)

    def proxy(self, everything):
        """A proxy of datagrams to port 5300, whatever their destination: its socket."""
        v6 = ":" in everything
        family, iptables = ("-6", "ip6tables") if v6 else ("-4", "iptables")
        for words in (f"ip {family} rule add fwmark 1 lookup 100",
                      f"ip {family} route add local {everything} dev lo table 100",
                      f"{iptables} -t mangle -A PREROUTING -i lan0 -p udp --dport 5300 -j TPROXY "
                      "--tproxy-mark 0x1/0x1 --on-port 5301"):
            self.edge.run(*words.split())
        self.addCleanup(self.edge.run, iptables, "-t", "mangle", "-F")
        self.addCleanup(self.edge.ip, family, "route", "flush", "table", 100)
        self.addCleanup(self.edge.ip, family, "rule", "del", "fwmark", 1, "lookup", 100)
        end = self.edge.inside(socket.socket, socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(end.close)
        self.make_transparent(end)
        end.bind(("::" if v6 else "0.0.0.0", 5301))
        end.settimeout(0.5)
        return end

    def test_of_datagrams(self):
        """What it has taken gets there; what nobody has taken goes through the tunnel, also to the proxy's port."""
        for address, everything in ((V4, "0.0.0.0/0"), (V6, "::/0")):
            with self.subTest(address):
                proxy, kind = self.proxy(everything), socket.AF_INET6 if ":" in address else socket.AF_INET
                client = self.lab.client.inside(socket.socket, kind, socket.SOCK_DGRAM)
                server = self.lab.server.inside(socket.socket, kind, socket.SOCK_DGRAM)
                for end in (client, server):
                    self.addCleanup(end.close)
                server.bind((address, 5301))
                server.settimeout(3)
                if not self.gateway.process:
                    self.up()
                client.sendto(b"for the proxy", (address, 5300))
                self.assertEqual(proxy.recv(100), b"for the proxy")
                client.sendto(b"for the server", (address, 5301))
                self.assertEqual(server.recv(100), b"for the server")
                with self.assertRaises(TimeoutError):
                    proxy.recv(100)

    def test_a_listener_for_any_address(self):
        """Connections to its port that TPROXY has not given it go on to their destinations."""
        self.up()
        for address, wildcard in ((V4, "0.0.0.0"), (V6, "::")):
            with self.subTest(address):
                kind = socket.AF_INET6 if ":" in address else socket.AF_INET
                ends = [namespace.inside(socket.socket, kind) for namespace in (self.edge, self.lab.server,
                                                                                self.lab.client)]
                for end in ends:
                    self.addCleanup(end.close)
                    end.settimeout(3)
                proxy, server, client = ends
                self.make_transparent(proxy)
                for end, own in ((proxy, wildcard), (server, address)):
                    end.bind((own, 5302))
                    end.listen()
                client.connect((address, 5302))
                server.accept()[0].close()

    def test_a_listener_for_any_address_leaves_what_others_have_marked(self):
        """What another program's mark sends over an uplink gets there, also to the port of the listener."""
        self.up()
        site = self.lab.sites[0]
        way = f"via {site.link_addresses(0)[0][1]} dev {site.device(0)}"
        for name, rules in (MARKED | IN_BRAIDS_BITS).items():
            with self.subTest(name), steered(self.edge, rules, way, port=5303), contextlib.ExitStack() as ends:
                proxy, server, client = (ends.enter_context(namespace.inside(socket.socket)) for namespace in (
                    self.edge, self.lab.server, self.lab.client))
                self.make_transparent(proxy)
                for end, own in ((proxy, "0.0.0.0"), (server, V4)):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    end.bind((own, 5303))
                    end.listen()
                    end.settimeout(3)
                client.settimeout(3)
                client.connect((V4, 5303))
                server.accept()[0].close()


class ProxiesWithoutStreams(Proxies):
    STREAMS = "off"

    def test_of_connections(self):
        with Squid(self.lab) as neighbour:
            own = self.host()
            self.up()
            self.talk(neighbour)
            self.check(neighbour)
            self.reload()
            self.check(neighbour)
            self.gateway.stop()
            self.assertEqual(self.host(), own)


class BesideAGuard(NeighbourCase):
    """Other tunnels of the host go on past the guard by the marks that doctor names."""

    WHEN_DOWN = "block"

    def tearDown(self):
        super().tearDown()
        self.gateway.config["device"].pop("bypass-marks", None)
        self.braidctl("release")

    def braidctl(self, *words):
        self.gateway.write_config()
        return self.edge.run(binary("braidctl"), *words, self.gateway.path)

    def goes_on(self, neighbour, marks):
        self.assertIn(f"add 'bypass-marks: [{', '.join(marks)}]'", self.braidctl("check"))
        self.assertEqual(take_advice(self.gateway), marks)
        self.assertNotIn("bypass-marks", self.braidctl("check"))
        self.assertEqual(take_advice(self.gateway), [], "nothing is wrong any more")
        self.talk(neighbour)
        self.check(neighbour)
        for name, act in (("guard", lambda: self.braidctl("guard", "apply")), ("start", self.up),
                          ("reload", self.reload), ("kill", lambda: self.gateway.stop(signal.SIGKILL)),
                          ("start again", self.up), ("stop", self.gateway.stop)):
            with self.subTest(name):
                act()
                self.check(neighbour)
        self.passed()

    def test_wg(self):
        with WgQuick(self.lab) as neighbour:
            self.look(f"udp dport {WgQuick.PEER_PORT}", 'oifname { "wifi0", "lte0" } meta mark 0xca6c')
            self.goes_on(neighbour, ["0xca6c"])

    def test_tailscale(self):
        with Tailscale(self.lab) as neighbour:
            self.look(f"meta l4proto {{ tcp, udp }} th dport {{ {Tailscale.PEER_PORT}, 7001 }}",
                      'oifname { "wifi0", "lte0" } meta mark 0x80000')
            self.goes_on(neighbour, ["0x80000/0xff0000"])


if __name__ == "__main__":
    unittest.main()
