"""`nat`, `forwards` and `forwarding` on real kernels: the addresses that servers see, and what remains after a normal
end and after kill -9."""

import contextlib
import copy
import signal
import socket
import struct
import subprocess
import unittest

from lab import Link
from lab.gateway import Gateway
from lab.measure import iperf3
from lab.netns import run
from lab.services import Iperf3
from pair_case import V4, V6, PairCase
from unit_sandbox import sandboxed

EDGE = {V4: "192.168.10.2", V6: "fd00:0:0:10::2"}  # the client, a host behind the edge
HUB = {V4: "192.168.100.1", V6: "fd00:0:0:100::1"}  # the concentrator's addresses in the server's network
TUNNEL = {V4: "10.255.0.1", V6: "fd00:0:0:ff::1"}  # and on its device
FORWARDS = [entry for to in EDGE.values() for entry in (
    {"port": 8080, "to": f"[{to}]:80" if ":" in to else f"{to}:80"},
    {"protocol": "udp", "port": "5000-5003", "to": to},
    {"port": 8081, "to": to, "source": "own"},
    {"port": 8082, "to": to, "from": ["fd77::/64" if ":" in to else "198.51.100.0/24"]})]
ROUTER = {"nat": "on", "forwards": FORWARDS}
ADDRESSES = (V4, V6)


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def sysctl(namespace, name, value=None):
    """The value of a setting of IPv4 and of IPv6; `value`: sets it."""
    paths = [f"/proc/sys/net/{version}/conf/{name}" for version in ("ipv4", "ipv6")]

    def work():
        for path in paths if value is not None else ():
            with open(path, "w", encoding="ascii") as file:
                file.write(str(value))
        out = []
        for path in paths:
            with open(path, encoding="ascii") as file:
                out.append(int(file.read()))
        return out

    return namespace.inside(work)


def advertise(interface):
    """Sends a router advertisement (RFC 4861 section 4.2) with a lifetime of 1800 s to all nodes."""
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as end:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
        end.sendto(message, ("ff02::1", 0, 0, socket.if_nametoindex(interface)))


class Router(PairCase):
    LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
    CONCENTRATOR = ROUTER

    def setUp(self):
        self.hub = self.lab.gateway
        self.hub.config = merge_copy(self.hub.config, ROUTER)
        self.ready()

    def ready(self):
        if self.hub.process is None or self.hub.process.poll() is not None:
            self.hub.start()
        self.lab.edge_gateway.wait_up(subflows=2)

    def tables(self):
        """The nf_tables tables at the concentrator."""
        out = self.lab.concentrator.run("nft", "list", "tables")
        return {line.split()[2] for line in out.splitlines() if line.startswith("table ")}

    @contextlib.contextmanager
    def listener(self, namespace, address, port, kind=socket.SOCK_STREAM):
        def make():
            end = socket.socket(family(address), kind)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end.bind((address, port))
            end.settimeout(5)
            if kind == socket.SOCK_STREAM:
                end.listen()
            return end

        with namespace.inside(make) as end:
            yield end

    def connect(self, namespace, address, port, timeout=5):
        """The server's other addresses are routed past the tunnel."""
        source = (V6 if ":" in address else V4, 0) if namespace is self.lab.server else None
        return namespace.inside(socket.create_connection, (address, port), timeout, source)

    def seen(self, server, to, port, client, via, via_port=None):
        """The client address that a server sees when a client connects to `via`. The answer must be complete."""
        with self.listener(server, to, port) as listener, \
                self.connect(client, via, via_port or port) as near:
            far, name = listener.accept()
            with far:
                near.sendall(b"question")
                self.assertEqual(far.recv(100), b"question")
                far.sendall(b"answer")
                self.assertEqual(near.recv(100), b"answer")
        return name[0]

    # ---- nat

    def test_servers_see_the_concentrator(self):
        for address in ADDRESSES:
            with self.subTest(address=address):
                self.assertEqual(self.seen(self.lab.server, address, 9000, self.lab.client, address), HUB[address])
                self.assertEqual(self.ping(address), 5)

    def test_a_download_is_masqueraded(self):
        self.lab.server.ip("route", "del", "default")  # the only way back to the edge is by the concentrator's address
        try:
            self.verify(self.download(self.file(8_000_000)))
            self.assertEqual(self.ping(V4), 5)
        finally:
            self.lab.server.route("0.0.0.0/0", "via", HUB[V4])

    def test_ipv6_may_be_left_alone(self):
        self.change(nat="ipv4")
        self.assertEqual(self.seen(self.lab.server, V4, 9000, self.lab.client, V4), HUB[V4])
        self.assertEqual(self.seen(self.lab.server, V6, 9000, self.lab.client, V6), EDGE[V6])

    def test_what_the_concentrator_sends_itself_is_not_touched(self):
        with self.listener(self.lab.server, V4, 9000) as listener:
            with self.connect(self.lab.concentrator, V4, 9000):
                far, name = listener.accept()
                far.close()
        self.assertEqual(name[0], HUB[V4])

    # ---- forwards

    def test_a_tcp_port_leads_to_a_host_behind_the_edge(self):
        for address in ADDRESSES:
            with self.subTest(address=address):
                seen = self.seen(self.lab.client, EDGE[address], 80, self.lab.server, HUB[address], 8080)
                self.assertEqual(seen, address)

    def test_udp_ports_lead_there_too(self):
        for address in ADDRESSES:
            for port in (5000, 5003):
                with self.subTest(address=address, port=port), \
                        self.listener(self.lab.client, EDGE[address], port, socket.SOCK_DGRAM) as far, \
                        self.lab.server.inside(socket.socket, family(address), socket.SOCK_DGRAM) as near:
                    near.settimeout(5)
                    near.bind((address, 0))
                    near.sendto(b"question", (HUB[address], port))
                    data, name = far.recvfrom(100)
                    self.assertEqual((data, name[0]), (b"question", address))
                    far.sendto(b"answer", name)
                    data, name = near.recvfrom(100)
                    self.assertEqual((data, name[:2]), (b"answer", (HUB[address], port)))

    def test_the_host_may_see_the_concentrator(self):
        for address in ADDRESSES:
            with self.subTest(address=address):
                seen = self.seen(self.lab.client, EDGE[address], 8081, self.lab.server, HUB[address])
                self.assertEqual(seen, TUNNEL[address])

    def test_a_host_behind_an_edge_reaches_it_by_the_public_address(self):
        for address in ADDRESSES:
            with self.subTest(address=address):
                seen = self.seen(self.lab.client, EDGE[address], 80, self.lab.client, HUB[address], 8080)
                self.assertEqual(seen, TUNNEL[address])
                with self.listener(self.lab.client, EDGE[address], 80), self.assertRaises(OSError):
                    self.connect(self.lab.client, TUNNEL[address], 8080)

    def test_other_sources_than_those_named_find_a_closed_port(self):
        for address in ADDRESSES:
            with self.subTest(address=address), self.listener(self.lab.client, EDGE[address], 8082), \
                    self.assertRaises(ConnectionRefusedError):
                self.connect(self.lab.server, HUB[address], 8082)

    def test_a_forwarded_upload_keeps_its_rate(self):
        Iperf3(self.lab, self.lab.client)
        self.change(forwards=[*FORWARDS, {"port": 5201, "to": EDGE[V4]}])
        report = iperf3(self.lab, HUB[V4], seconds=3, namespace=self.lab.server)
        self.assertGreater(report["end"]["sum_received"]["bits_per_second"], 30e6)

    # ---- begin and end

    def change(self, **settings):
        """Reloads the concentrator with other settings and waits until the rules match."""
        count = self.lab.log("concentrator").read_text(errors="replace").count("configuration read again")
        self.hub.config = merge_copy(self.hub.config, settings)
        self.hub.reload()
        self.eventually(lambda: self.lab.log("concentrator").read_text(errors="replace").count(
            "configuration read again") > count, "the reload")

    def test_a_reload_removes_and_adds(self):
        self.change(nat="off", forwards=[])
        self.assertNotIn("braid_nat-braid0", self.tables())
        self.assertEqual(self.seen(self.lab.server, V4, 9000, self.lab.client, V4), EDGE[V4])
        self.change(nat="on")
        self.assertEqual(self.seen(self.lab.server, V4, 9001, self.lab.client, V4), HUB[V4])
        self.change(forwards=FORWARDS)
        self.assertEqual(self.seen(self.lab.client, EDGE[V4], 80, self.lab.server, HUB[V4], 8080), V4)

    def test_rules_are_gone_at_the_end_and_after_a_kill(self):
        run("ip", "netns", "exec", self.lab.concentrator.name, "nft", "add", "table", "inet", "host")
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                self.ready()
                self.assertEqual(self.tables(), {"host", "braid_nat-braid0"})
                self.hub.stop(number)
                self.assertEqual(self.tables(), {"host"})
        self.ready()
        self.lab.concentrator.run("nft", "delete", "table", "inet", "host")

    def test_two_daemons_have_a_table_each(self):
        with self.second_daemon():
            self.assertEqual(self.tables(), {"braid_nat-braid0", "braid_nat-braid7"})
            self.assertEqual(self.seen(self.lab.server, V4, 9000, self.lab.client, V4), HUB[V4])
            self.second.stop(signal.SIGKILL)
            self.assertEqual(self.tables(), {"braid_nat-braid0"})
        self.assertEqual(self.seen(self.lab.server, V4, 9001, self.lab.client, V4), HUB[V4])

    @contextlib.contextmanager
    def second_daemon(self, **settings):
        """Another gateway at the concentrator, without peers."""
        run(self.lab.binary("braidctl"), "keygen", "second", "--dir", self.lab.directory)
        pin = next(iter(self.hub.config["peers"]))["pin"]
        config = {"identity": {"key": "second.key", "certificate": "second.crt"}, "device": {"name": "braid7"},
                  "control": {"socket": str(self.lab.directory / "second.sock")},
                  "state": str(self.lab.directory / "second.state"), "listen": ["0.0.0.0:4477"],
                  "peers": [{"name": "nobody", "pin": pin, "prefixes": ["10.66.0.0/24"]}], "nat": "on", **settings}
        self.second = Gateway(self.lab, "second", self.lab.concentrator, config)
        self.second.start()
        try:
            yield self.second
        finally:
            if self.second.process:
                self.second.stop()
            for name in ("second.key", "second.crt"):
                (self.lab.directory / name).unlink()

    # ---- streams

    def test_streams_are_masqueraded_too(self):
        streams = {"streams": {"enabled": "on"}}
        for gateway in self.lab.gateways():
            gateway.config = merge_copy(gateway.config, streams)
            gateway.restart()
        try:
            self.ready()
            for gateway in self.lab.gateways():
                self.eventually(lambda: gateway.status()["streams"].get("intercepting"), "connections are taken over")
            before = self.lab.edge_gateway.status()["streams"]["accepted"]
            for address in ADDRESSES:
                self.assertEqual(self.seen(self.lab.server, address, 8080, self.lab.client, address), HUB[address])
            path = self.file(8_000_000)
            self.verify(self.download(path))
            self.assertEqual(self.lab.edge_gateway.status()["streams"]["accepted"] - before, 3)
            # A forwarded port is carried as packets, even when it matches the streams' rules.
            self.assertEqual(self.seen(self.lab.client, EDGE[V4], 80, self.lab.server, HUB[V4], 8080), V4)
        finally:
            for gateway in self.lab.gateways():
                gateway.config.pop("streams")
                gateway.restart()

    # ---- forwarding

    @contextlib.contextmanager
    def forwarder(self):
        """The concentrator on a host without forwarding, which the gateway must enable at its start."""
        hub = self.lab.concentrator
        self.hub.stop()
        sysctl(hub, "all/forwarding", 0)
        self.hub.config["forwarding"] = "on"
        try:
            yield hub
        finally:
            self.hub.config.pop("forwarding")
            sysctl(hub, "all/forwarding", 1)
            self.ready()

    def test_forwarding_is_on_while_the_daemon_runs(self):
        hub = self.lab.concentrator
        self.hub.stop()
        sysctl(hub, "all/forwarding", 0)
        sysctl(hub, "wifi0/forwarding", 1)
        self.hub.config["forwarding"] = "on"
        try:
            self.ready()
            self.assertEqual(sysctl(hub, "all/forwarding"), [1, 1])
            self.assertEqual(self.seen(self.lab.server, V4, 9000, self.lab.client, V4), HUB[V4])
            self.assertEqual(self.seen(self.lab.server, V6, 9000, self.lab.client, V6), HUB[V6])
            with self.subTest("what others switch off is put back"):
                sysctl(hub, "all/forwarding", 0)
                self.eventually(lambda: sysctl(hub, "all/forwarding") == [1, 1], "forwarding is put back")
            with self.subTest("a daemon that was killed leaves word"):
                self.hub.stop(signal.SIGKILL)
                self.assertEqual(sysctl(hub, "all/forwarding"), [1, 1])
                self.hub.start()
            self.hub.stop()
            self.assertEqual(sysctl(hub, "all/forwarding"), [0, 0])
            with self.subTest("a reload switches it"):
                self.hub.config["forwarding"] = "off"
                self.ready()
                self.change(forwarding="on")
                self.assertEqual(sysctl(hub, "all/forwarding"), [1, 1])
                self.change(forwarding="off")
                self.assertEqual(sysctl(hub, "all/forwarding"), [0, 0])
        finally:
            self.hub.config.pop("forwarding", None)
            sysctl(hub, "all/forwarding", 1)
            self.hub.restart()

    def test_a_daemon_that_sees_no_settings_has_those_of_its_unit(self):
        hub = self.lab.concentrator
        self.hub.stop()
        sysctl(hub, "all/forwarding", 0)
        self.hub.config["forwarding"] = "on"
        self.hub.wrapper = sandboxed()
        try:
            self.ready()
            self.assertEqual(sysctl(hub, "all/forwarding"), [1, 1])
            self.assertEqual(self.seen(self.lab.server, V4, 9000, self.lab.client, V4), HUB[V4])
            self.hub.stop()
            self.assertEqual(sysctl(hub, "all/forwarding"), [0, 0])
        finally:
            self.hub.wrapper = []
            self.hub.config.pop("forwarding")
            sysctl(hub, "all/forwarding", 1)
            self.ready()

    def test_without_the_units_folders_the_start_names_the_remedy(self):
        with self.forwarder() as hub:
            self.hub.write_config()
            done = subprocess.run(hub.words(*sandboxed(binds=False), self.lab.binary("braidd"), "--config",
                                            self.hub.path),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=30)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot switch net.ipv4.conf.all.forwarding on", done.stdout)
            self.assertIn("run 'sysctl -w net.ipv4.conf.all.forwarding=1' on the host", done.stdout)

    def test_what_was_found_is_put_back(self):
        hub = self.lab.concentrator
        self.hub.stop()
        sysctl(hub, "all/forwarding", 0)
        sysctl(hub, "lan0/forwarding", 1)
        hub.sysctl(net__ipv4__conf__all__accept_redirects=0)
        self.hub.config["forwarding"] = "on"
        try:
            for killed in (False, True):
                with self.subTest(killed=killed):
                    self.ready()
                    if killed:
                        self.hub.stop(signal.SIGKILL)
                        self.hub.start()
                    self.hub.stop()
                    self.assertEqual(sysctl(hub, "all/forwarding"), [0, 0])
                    self.assertEqual(sysctl(hub, "lan0/forwarding"), [1, 1])
                    self.assertEqual(sysctl(hub, "wifi0/forwarding"), [0, 0])
                    self.assertEqual(sysctl(hub, "all/accept_redirects")[0], 0)
        finally:
            self.hub.config.pop("forwarding")
            sysctl(hub, "all/forwarding", 1)
            self.lab.edge_gateway.restart()  # it may not have noticed a gateway that ran for a moment
            self.ready()

    def test_forwarding_that_another_program_may_need_by_now_stays(self):
        """Docker, for one, finds it switched on, and does not say that it needs it."""
        hub = self.lab.concentrator
        for killed in (False, True):
            with self.subTest(killed=killed), self.forwarder():
                self.ready()
                hub.ip("link", "add", "docker0", "type", "bridge")
                try:
                    if killed:
                        self.hub.stop(signal.SIGKILL)
                        self.hub.start()
                    self.hub.stop()
                    self.assertEqual(sysctl(hub, "all/forwarding"), [1, 1])
                finally:
                    hub.ip("link", "del", "docker0")
                    self.lab.edge_gateway.restart()  # it may not have noticed a gateway that ran for a moment

    def test_forwarding_that_was_on_stays(self):
        self.hub.config["forwarding"] = "on"
        self.hub.restart()
        self.hub.stop()
        self.assertEqual(sysctl(self.lab.concentrator, "all/forwarding"), [1, 1])
        self.hub.config.pop("forwarding")

    def test_uplinks_go_on_taking_router_advertisements(self):
        edge = self.lab.edge
        gateway = self.lab.edge_gateway
        gateway.stop()
        sysctl(edge, "all/forwarding", 0)
        gateway.config["forwarding"] = "on"
        try:
            gateway.start()
            self.assertEqual(sysctl(edge, "all/forwarding"), [1, 1])
            self.assertEqual(sysctl(edge, "wifi0/forwarding")[1], 0)
            self.assertEqual(sysctl(edge, "lan0/forwarding"), [1, 1])
            self.ready()
            self.assertEqual(self.ping(V6), 5)
        finally:
            gateway.config.pop("forwarding")
            gateway.stop()
            sysctl(edge, "all/forwarding", 1)
            gateway.start()

    @contextlib.contextmanager
    def advertised(self, namespace):
        """Adds an interface `ra0` with a default route from a router advertisement to the namespace. Returns a function
        that tells whether the route exists."""
        namespace.ip("link", "add", "ra0", "type", "veth", "peer", "name", "ra1")
        try:
            for name in ("ra0", "ra1"):
                namespace.sysctl(**{f"net__ipv6__conf__{name}__accept_dad": 0})
                namespace.sysctl(**{f"net__ipv6__conf__{name}__accept_ra": 1})
                sysctl(namespace, f"{name}/forwarding", 0)
            for name in ("ra1", "ra0"):
                namespace.ip("link", "set", name, "up")

            def route():
                return "proto ra" in namespace.ip("-6", "route", "show", "default", "dev", "ra0")

            def told():
                with contextlib.suppress(OSError):  # its link-local address comes a moment after the carrier
                    namespace.inside(advertise, "ra1")
                return route()

            self.eventually(told, "a route by router advertisement")
            yield route
        finally:
            namespace.ip("link", "del", "ra0")

    def test_a_default_route_by_router_advertisement_stays(self):
        with self.forwarder() as hub:
            with self.advertised(hub) as route:
                self.ready()
                self.assertEqual(sysctl(hub, "all/forwarding"), [1, 1])
                self.assertTrue(route())
                self.assertEqual(hub.run("sysctl", "-n", "net.ipv6.conf.ra0.accept_ra").strip(), "1")
                self.assertEqual(sysctl(hub, "ra0/forwarding")[1], 0)
                self.hub.stop()

    def test_an_uplink_that_comes_anew_takes_router_advertisements(self):
        edge, gateway = self.lab.edge, self.lab.edge_gateway
        gateway.stop()
        sysctl(edge, "all/forwarding", 0)
        before = copy.deepcopy(gateway.config)
        gateway.config["forwarding"] = "on"
        gateway.config["uplinks"] = [*gateway.config["uplinks"], {"interface": "stick0"}]
        try:
            gateway.start()
            edge.ip("link", "add", "stick0", "type", "veth", "peer", "name", "stick1")
            self.eventually(lambda: sysctl(edge, "stick0/forwarding")[1] == 0, "it is no router")
            self.assertEqual(sysctl(edge, "stick1/forwarding")[1], 1)
        finally:
            gateway.stop()
            edge.ip("link", "del", "stick0")
            gateway.config.clear()
            gateway.config.update(before)
            sysctl(edge, "all/forwarding", 1)
            gateway.start()

    def test_two_daemons_forward_until_the_last_one_ends(self):
        with self.forwarder() as hub:
            self.ready()
            with self.second_daemon(forwarding="on") as second:
                self.hub.stop()
                self.eventually(lambda: sysctl(hub, "all/forwarding") == [1, 1], "the second one forwards", timeout=3)
                second.stop()
            self.assertEqual(sysctl(hub, "all/forwarding"), [0, 0])


class SpecialDestinations(PairCase):
    """Hosts behind a peer must not reach the cloud's metadata service, which gives out secrets: with `nat: on`, and a
    server with these addresses next to the concentrator."""

    LINKS = [Link("wifi", 50, 20)]
    GATEWAYS = False
    CLOUDS = ("169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254")
    LINK_LOCAL = "169.254.7.7"  # of another host of the LAN there

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lab, streams = cls.lab, {"streams": {"enabled": "on"}}
        lab.make_gateways(streams, {"nat": "on", **streams})
        special = [f"{address}/{128 if ':' in address else 32}" for address in (*cls.CLOUDS, cls.LINK_LOCAL)]
        lab.server.address("lan0", *special)
        for network in special:
            lab.concentrator.route(network, "dev", "lan0")
        config = lab.edge_gateway.config
        config["peers"][0]["prefixes"] += ["0.0.0.0/0", "::/0"]
        config["device"]["routes"] += special
        for gateway in lab.gateways():
            gateway.start()
        for gateway in lab.gateways():
            lab.wait_for(lambda gateway=gateway: (gateway.status() or {"streams": {}})["streams"].get("intercepting"),
                         f"{gateway.name} to take connections over")

    def reaches(self, address, port):
        """True when a TCP connection of the client reaches the server and the answer is complete."""
        def listen():
            end = socket.socket(family(address), socket.SOCK_STREAM)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end.bind((address, port))
            end.listen()
            end.settimeout(1)
            return end

        with self.lab.server.inside(listen) as listener:
            try:
                with self.lab.client.inside(socket.create_connection, (address, port), 1) as near:
                    near.sendall(b"GET /latest/meta-data/")
                    far, _ = listener.accept()
                    with far:
                        far.sendall(far.recv(100))
                    return near.recv(100) == b"GET /latest/meta-data/"
            except OSError:
                return False

    def refused(self):
        return self.lab.gateway.drops().get("special_destination", 0)

    def test_no_packet_gets_there(self):
        for address in self.CLOUDS:
            with self.subTest(address=address):
                before = self.refused()
                self.assertFalse(self.reaches(address, 9000))
                self.assertGreater(self.refused(), before)
                before = self.refused()
                self.assertEqual(self.ping(address, count=2, wait=0.3), 0)
                self.assertEqual(self.refused() - before, 2)
        for address in ADDRESSES:
            self.assertTrue(self.reaches(address, 9000), address)

    def test_no_stream_gets_there(self):
        def figure(name):
            return self.lab.edge_gateway.status()["streams"][name]

        for address in self.CLOUDS:
            with self.subTest(address=address):
                before = figure("accepted"), figure("ended_forbidden")
                self.assertFalse(self.reaches(address, 8080))
                self.assertEqual((figure("accepted"), figure("ended_forbidden")), (before[0] + 1, before[1] + 1))
        before = figure("accepted")
        for address in ADDRESSES:
            self.assertTrue(self.reaches(address, 8080), address)
        self.assertEqual(figure("accepted"), before + 2)

    def test_what_networks_name_is_reached(self):
        """A link-local network of the LAN there, and one cloud address by itself."""
        gateway = self.lab.gateway
        self.assertFalse(self.reaches(self.LINK_LOCAL, 9000))
        gateway.config["device"]["networks"] = ["169.254.0.0/16", "100.100.100.200/32"]
        gateway.reload()
        self.addCleanup(gateway.reload)
        self.addCleanup(gateway.config["device"].pop, "networks")
        self.eventually(lambda: self.ping(self.LINK_LOCAL, count=1, wait=0.3), "the network is open")
        for port in (9000, 8443):
            self.assertTrue(self.reaches(self.LINK_LOCAL, port), port)
            self.assertTrue(self.reaches("100.100.100.200", port), port)
        for address in ("169.254.169.254", "168.63.129.16"):
            self.assertFalse(self.reaches(address, 9000), address)


def merge_copy(config, changes):
    out = copy.deepcopy(config)
    out.update(copy.deepcopy(changes))
    return out


if __name__ == "__main__":
    unittest.main()
