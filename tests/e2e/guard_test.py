"""`device.when-down: block`, and without the key: what leaves in clear, past the tunnel, while the gateway starts,
runs, stops and is killed, and what must pass."""

import json
import signal
import socket
import sys
import unittest

from guard_case import ELSEWHERE, MARKED, GuardCase, Sender
from lab.site import PUBLIC
from pair_case import V4, V6

MAYBE_LAN = "192.168.77.1"  # an address as in LANs, which is of nobody
RULES = [6200, 6690, 6700]  # into the tunnel; and those of the guard


class Block(GuardCase):
    def test_nothing_leaves_in_clear_whatever_happens(self):
        wifi = self.lab.sites[0].device(0)
        self.assertGreater(min(self.seen()), 50, "the look-out sees what leaves in clear")
        self.braidctl("guard", "apply")
        events = [
            ("before the start", None), ("start", self.up), ("running", None),
            ("reload", self.gateway.reload),
            ("a lease", lambda: self.edge.ip("route", "replace", "default", "via", "10.0.0.2", "dev", wifi)),
            ("option 121", lambda: self.edge.ip("route", "add", "198.51.100.0/24", "via", "10.0.0.2", "dev", wifi)),
            ("an uplink goes", lambda: self.edge.ip("link", "set", wifi, "down")),
            ("an uplink comes", lambda: self.lab.restore_uplink(0)),
            *((f"rule {priority} is taken away",
               lambda priority=priority: [self.take_rule_away(family, priority) for family in ("-4", "-6")])
              for priority in RULES),
            ("the filter is taken away", lambda: self.edge.run("nft", "flush", "ruleset")),
            ("the hub goes", lambda: self.lab.gateway.stop(signal.SIGKILL)),
            ("the hub comes", lambda: [self.lab.gateway.start(), self.gateway.wait_up(subflows=2)]),
            ("kill", lambda: self.gateway.stop(signal.SIGKILL)), ("after the kill", None),
            ("start after the kill", self.up),
            ("stop", self.gateway.stop), ("stopped", None), ("start again", self.up),
        ]
        self.addCleanup(self.edge.run, "ip", "route", "del", "default", "metric", 0, check=False)
        self.addCleanup(self.edge.run, "ip", "route", "del", "198.51.100.0/24", check=False)
        for name, action in events:
            with self.subTest(name):
                self.assertEqual(self.seen(action), [0, 0])
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])

    def take_rule_away(self, family, priority):
        """The daemon puts it back."""
        self.assertIn(f"{priority}:", self.edge.ip(family, "rule"))
        self.edge.ip(family, "rule", "del", "priority", priority)
        self.eventually(lambda: f"{priority}:" in self.edge.ip(family, "rule"), f"{family} rule {priority} is back")

    def test_the_daemon_repairs_the_filter(self):
        self.up()
        self.edge.run("nft", "flush", "ruleset")
        self.eventually(lambda: "chain postrouting" in self.edge.run("nft", "list", "ruleset"), "it is back", timeout=3)
        self.assertRegex(self.log(), "was gone from the host, and is put back: the guard's packet filter")

    def send_without_end(self):
        """Two senders, each of which has a datagram in the packet filter at any time."""
        words = ("import contextlib, socket, sys\nend = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
                 "to = (sys.argv[1], int(sys.argv[2]))\n"
                 "while True:\n with contextlib.suppress(OSError):\n  end.sendto(b'now?', to)")
        for _ in range(2):
            sender = self.edge.popen(sys.executable, "-c", words, ELSEWHERE[1], MARKED)
            self.addCleanup(sender.wait)
            self.addCleanup(sender.kill)

    def test_there_is_no_gap_while_a_guard_is_replaced(self):
        """A datagram that is in the packet filter at that moment."""
        self.braidctl("guard", "apply")
        self.send_without_end()
        self.assertEqual(self.seen(lambda: [self.braidctl("guard", "apply") for _ in range(40)]), [0, 0])

    def test_there_is_no_gap_while_its_numbers_change(self):
        device = self.gateway.config["device"]
        for key in ("rule-priority", "mark-mask"):
            self.addCleanup(device.pop, key, None)
        self.braidctl("guard", "apply")
        self.send_without_end()

        def change():
            for number in range(20):
                device["rule-priority"] = (6000, 7000)[number % 2]
                self.braidctl("guard", "apply")
                for family in ("-4", "-6"):
                    rules = self.edge.ip(family, "rule")
                    self.assertEqual(["6690:" in rules, "6700:" in rules], [number % 2 == 0] * 2, rules)
                    self.assertEqual(["7690:" in rules, "7700:" in rules], [number % 2 == 1] * 2, rules)
            device["mark-mask"] = "0xff0000"
            self.braidctl("guard", "apply")

        self.assertEqual(self.seen(change), [0, 0])
        for family in ("-4", "-6"):
            rules = self.edge.ip(family, "rule")
            self.assertEqual([rules.count("7690:"), rules.count("7700:")], [1, 1], rules)
            self.assertIn("0x400000/0xe00000", rules)
        self.braidctl("release")
        self.assertEqual(self.host(), self.before)

    def test_the_other_family_too(self):
        self.gateway.config["device"]["routes"] = ["0.0.0.0/0"]
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0])
        self.assertEqual(self.seen(self.up), [0, 0])
        self.assertEqual(self.ping(V4), 5)
        self.assertEqual(self.seen(self.gateway.stop), [0, 0])

    def passes(self, device, address=MAYBE_LAN):
        """Whether this host may send by this interface, by default to an address as in LANs."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with self.edge.inside(socket.socket, family, socket.SOCK_DGRAM) as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            try:
                end.sendto(b"may it?", (address, MARKED + 1))
            except PermissionError:
                return False
            return True

    def make_lan(self, name, *addresses):
        """A further LAN of the edge without hosts, until the test ends."""
        self.edge.ip("link", "add", name, "type", "bridge")
        self.addCleanup(self.edge.ip, "link", "del", name)
        self.address_lan(name, *addresses)

    def address_lan(self, name, *addresses):
        for address in addresses:
            self.edge.address(name, address)
        self.edge.ip("link", "set", name, "up")

    def test_an_uplink_by_a_further_name(self):
        """What leaves by it is guarded even to addresses that may be those of a LAN. So is what leaves by an interface
        that comes while no daemon runs, because that may be the uplink."""
        uplinks = self.gateway.config["uplinks"]
        self.addCleanup(self.gateway.config.update, uplinks=uplinks)
        named = []
        for index, uplink in enumerate(uplinks):
            device = self.lab.sites[0].device(index)
            name = f"further-name-of-uplink-{index}"
            self.edge.ip("link", "property", "add", "dev", device, "altname", name)
            self.addCleanup(self.edge.ip, "link", "property", "del", "dev", device, "altname", name)
            named.append({**uplink, "interface": name})
        self.gateway.config["uplinks"] = named
        self.addCleanup(Sender(self.edge, [MAYBE_LAN]).close)
        self.assertGreater(self.seen()[0], 50)
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0])
        # An interface that comes from another namespace keeps its index there, which may be smaller than others.
        used = {link["ifindex"] for link in json.loads(self.edge.ip("-json", "link"))}
        late = {"late0": max(used) + 1, "moved0": min(set(range(1, max(used))) - used)}
        for number, (name, index) in enumerate(late.items()):
            self.edge.ip("link", "add", name, "index", index, "type", "bridge")
            self.addCleanup(self.edge.ip, "link", "del", name)
            self.edge.address(name, f"172.31.{number}.1/24")
        self.assertEqual([self.passes(name) for name in ("lan0", *late)], [True, False, False])
        self.assertEqual(self.seen(self.up), [0, 0])
        self.assertEqual([self.passes(name) for name in ("lan0", *late)], [True, True, True],
                         "the daemon sees that they are not")
        self.gateway.stop(signal.SIGKILL)
        self.edge.ip("link", "del", "late0")
        self.edge.ip("link", "add", "other0", "index", late["late0"], "type", "bridge")
        self.edge.address("other0", "172.31.0.1/24")
        self.assertEqual([self.passes(name) for name in ("lan0", "moved0", "other0")], [True, True, False],
                         "an index that is used again is no interface that was known")
        self.edge.ip("link", "set", "other0", "down", "name", "late0")

    def use(self, *uplinks):
        """Takes these of the configured uplinks until the test ends."""
        self.addCleanup(self.gateway.config.update, uplinks=self.gateway.config["uplinks"])
        self.gateway.config["uplinks"] = list(uplinks)

    def test_an_interface_that_is_no_uplink_any_more_leads_past_the_tunnel(self):
        """A reload takes it out of `uplinks`, and it keeps its default route."""
        wifi, lte = self.gateway.config["uplinks"]
        for family, via in (("-4", "10.0.0.2"), ("-6", "fd01::2")):
            route = (family, "route", "add", "default", "via", via, "dev", "wifi0", "metric", 1)
            self.edge.ip(*route)
            self.addCleanup(self.edge.ip, family, "route", "del", *route[3:])
        self.addCleanup(Sender(self.edge, [MAYBE_LAN]).close)
        self.up()
        self.use(lte)
        self.assertEqual(self.seen(self.gateway.reload), [0, 0])
        self.gateway.wait_up()
        for name, action in (("killed", lambda: self.gateway.stop(signal.SIGKILL)),
                             ("the guard alone", lambda: self.braidctl("guard", "apply")),
                             ("again", self.gateway.start), ("stopped", self.gateway.stop)):
            with self.subTest(name):
                self.assertEqual(self.seen(action), [0, 0])
        self.use(wifi)
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0], "the other one")

    def test_what_is_for_a_lan_leaves_by_no_other_default_route(self):
        """While the LAN's interface is down. The other interface's own network is reached by it."""
        lan, hosts = ("172.31.8.1/24", "fd31:8::1/64"), ("172.31.8.7", "fd31:8::7")
        near = [pair[1] for pair in self.lab.sites[0].link_addresses(0)]
        for family, via in zip(("-4", "-6"), near):
            route = (family, "route", "add", "default", "via", via, "dev", "wifi0", "metric", 1)
            self.edge.ip(*route)
            self.addCleanup(self.edge.ip, family, "route", "del", *route[3:])
        self.make_lan("lan1", *lan)
        self.gateway.config["device"]["networks"] = ["172.31.8.0/24", "fd31:8::/64"]
        self.use(self.gateway.config["uplinks"][1])
        self.edge.ip("link", "set", "lan1", "down")
        for namespace in (self.edge, self.lab.client):
            self.addCleanup(Sender(namespace, hosts).close)
        self.braidctl("guard", "apply")
        for name, action in (("the guard alone", None), ("running", self.gateway.start),
                             ("the LAN comes", lambda: self.address_lan("lan1", lan[1])),
                             ("the LAN goes", lambda: self.edge.ip("link", "set", "lan1", "down")),
                             ("killed", lambda: self.gateway.stop(signal.SIGKILL))):
            with self.subTest(name):
                self.assertEqual(self.seen(action), [0, 0])
                self.assertEqual([self.passes("wifi0", address) for address in near], [True, True])

    def test_the_guard_of_the_boot_knows_the_lans_that_were_there(self):
        """Hosts of a LAN, also with public addresses, reach each other and this host before the service starts,
        although the guard was made before the network and while an uplink is absent."""
        lan, hosts = ("172.31.8.1/24", "198.51.100.1/26", "2001:db8:31::1/64"), (
            "172.31.8.7", "198.51.100.7", "2001:db8:31::7")

        def reached():
            return [self.passes("lan1", host) for host in hosts]

        self.make_lan("lan1", *lan)
        self.braidctl("guard", "apply")
        self.assertEqual(reached(), [True, True, True])
        self.edge.ip("link", "set", "lan1", "down")
        self.edge.ip("address", "flush", "dev", "lan1")
        self.use({**self.gateway.config["uplinks"][0], "interface": "modem0"})
        self.braidctl("guard", "apply")
        self.address_lan("lan1", *lan)
        self.eventually(lambda: "tentative" not in self.edge.ip("address", "show", "dev", "lan1"), "the addresses")
        self.assertEqual(reached(), [True, True, True])
        self.assertFalse(self.passes("lan1", "198.51.100.77"), "of no LAN")
        self.braidctl("release")
        self.edge.ip("address", "flush", "dev", "lan1")
        self.braidctl("guard", "apply")
        self.address_lan("lan1", *lan)
        self.assertEqual(reached(), [False, False, False], "a release forgets")

    def test_an_uplink_that_comes_late_may_have_the_name_as_a_further_one(self):
        """As with a modem that is plugged in after the boot."""
        self.addCleanup(Sender(self.edge, [MAYBE_LAN]).close)
        devices = [self.lab.sites[0].device(index) for index in (0, 1)]
        for device in devices:
            self.edge.ip("link", "set", device, "down")
        self.use(*({**uplink, "interface": f"modem{index}"}
                   for index, uplink in enumerate(self.gateway.config["uplinks"])))
        self.braidctl("guard", "apply")
        for index, device in enumerate(devices):
            self.edge.ip("link", "property", "add", "dev", device, "altname", f"modem{index}")
            self.addCleanup(self.edge.ip, "link", "property", "del", "dev", device, "altname", f"modem{index}")
            self.lab.restore_uplink(index)
        self.assertEqual(self.seen(), [0, 0])
        self.assertEqual(self.ping(self.lab.sites[0].client_address[0], namespace=self.edge), 5, "the LAN")
        self.assertEqual(self.seen(self.up), [0, 0])

    def test_narrow_routes_guard_what_they_name(self):
        self.gateway.config["device"]["routes"] = [f"{V4}/32", f"{V6}/128"]
        self.braidctl("guard", "apply")
        self.assertGreater(min(self.seen()), 50, "to others")
        for namespace in (self.edge, self.lab.client):
            self.assertEqual([self.ping(V4, count=1, wait=0.3, namespace=namespace),
                              self.ping(V6, count=1, wait=0.3, namespace=namespace)], [0, 0])

    def test_lan_uplinks_neighbours_and_replies_are_spared(self):
        """Before the first start, and while the gateway does not run."""
        self.braidctl("guard", "apply")
        self.spares()
        self.up()
        self.spares()
        self.gateway.stop(signal.SIGKILL)
        self.spares()

    def spares(self):
        for address in self.lab.sites[0].client_address:
            self.assertEqual(self.ping(address, namespace=self.edge), 5, address)
        for index in (0, 1):
            for near, source in zip((pair[0] for pair in self.lab.sites[0].link_addresses(index)), PUBLIC):
                with self.subTest(near=near):
                    self.assertEqual(self.ping(near, namespace=self.lab.concentrator), 5, "on the link")
                    self.assertEqual(self.ping(near, namespace=self.lab.concentrator, options=("-I", source)), 5)
                    with self.answering(self.edge, near, 2222) as listener:
                        self.assertTrue(self.is_answered(listener, near, 2222, source))

    def test_what_this_host_sends_for_another_tunnel_passes_and_nothing_else(self):
        """Packets with one of `bypass-marks`; not those of other hosts."""
        device = self.gateway.config["device"]
        device["bypass-marks"] = ["0x80000/0xff0000"]
        self.addCleanup(device.pop, "bypass-marks")
        self.edge.run("nft", "add table inet marker; add chain inet marker in { type filter hook prerouting priority "
                      "mangle; }; add rule inet marker in iifname lan0 meta mark set 0x80000")
        self.addCleanup(self.edge.run, "nft", "delete", "table", "inet", "marker", check=False)
        self.braidctl("guard", "apply")
        for name, action in (("the guard alone", None), ("running", self.up),
                             ("killed", lambda: self.gateway.stop(signal.SIGKILL)), ("again", self.up)):
            with self.subTest(name):
                self.assertEqual(self.seen(action), [0, 0], "the LAN's, marked, and this host's, without a mark")
                sender = Sender(self.edge, [V4, V6, *ELSEWHERE], 0x8abcd)
                self.assertGreater(min(self.seen()), 50)
                sender.close()
                self.seen()  # what was on the links has arrived
                sender = Sender(self.edge, [V4, V6, *ELSEWHERE], 0x90000)
                self.assertEqual(self.seen(), [0, 0], "another mark")
                sender.close()
        device["bypass-marks"] = []
        self.gateway.reload()
        self.eventually(lambda: "0x80000" not in self.edge.ip("rule") + self.edge.ip("-6", "rule"), "the reload")
        sender = Sender(self.edge, [V4, V6, *ELSEWHERE], 0x80000)
        self.addCleanup(sender.close)
        self.assertEqual(self.seen(), [0, 0])

    def test_leases_are_renewed_and_neighbours_found(self):
        self.braidctl("guard", "apply")
        self.edge.ip("neighbour", "flush", "dev", "wifi0")
        with self.edge.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as client, \
                self.lab.concentrator.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as server:
            client.bind(("0.0.0.0", 68))
            server.bind(("10.0.0.2", 67))
            server.settimeout(3)
            client.sendto(b"request", ("10.0.0.2", 67))
            self.assertEqual(server.recv(100), b"request")

    def test_an_endpoint_by_name(self):
        self.name_the_hub()
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(self.up), [0, 0])


class Unset(GuardCase):
    def test_nothing_outlives_the_gateway(self):
        self.gateway.config["device"].pop("when-down")
        self.assertEqual(self.seen(self.up)[0] > 0, True, "until the start")
        self.assertEqual(self.seen(), [0, 0])
        self.lab.gateway.stop(signal.SIGKILL)
        try:
            self.assertEqual(self.seen(), [0, 0], "while it runs, with or without its hub")
        finally:
            self.lab.gateway.start()
        self.gateway.stop()
        self.assertEqual(self.host(), self.before)
        self.assertGreater(min(self.seen()), 50)


if __name__ == "__main__":
    unittest.main()
