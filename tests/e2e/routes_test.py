"""`device.routes` beside the host's own routes: the routes that packets take, replies to what comes in by an uplink,
what others take away, what remains at the end, and the messages about an IP version that is left out."""

import re
import signal
import subprocess
import unittest

from lab.gateway import PORT, binary
from lab.site import PUBLIC
from pair_case import V4, V6, EdgeStartsCase

ANYWHERE = {"-4": "198.51.100.1", "-6": "2001:db8:77::1"}
EVERYTHING = ["0.0.0.0/0", "::/0"]
HALVES = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"]
TABLE = 6599
RULE = 6200
IN_CLEAR = r"device\.routes:? take all of IPv4 .*IPv6"


class EverythingCase(EdgeStartsCase):
    def setUp(self):
        super().setUp()
        self.gateway.config["peers"][0]["endpoints"] = [f"[{PUBLIC[1]}]:{PORT}"]  # by IPv6, past the tunnel
        self.gateway.config["peers"][0]["prefixes"] = EVERYTHING
        self.gateway.config["device"]["routes"] = EVERYTHING

    def routes(self):
        return [re.sub(r" expires \S+", "", self.edge.ip(family, "route", "show", "table", "all"))
                for family in ANYWHERE]

    def ways(self):
        """The device by which packets leave to destinations that only a default route covers."""
        found = [re.search(r" dev (\S+)", self.edge.ip(family, "route", "get", to)) for family, to in ANYWHERE.items()]
        return [match[1] for match in found]

    def add_route(self, *words):
        """Adds a route of the host until the test ends."""
        family = "-6" if any(":" in str(word) for word in words) else "-4"
        self.edge.ip(family, "route", "add", *words)
        self.addCleanup(self.edge.run, "ip", family, "route", "del", *words, check=False)

    def everything_of_the_host(self):
        """Routes, rules and packet filter."""
        return (self.routes(), [self.edge.ip(family, "rule") for family in ANYWHERE],
                self.edge.run("nft", "list", "ruleset"))


class Everything(EverythingCase):
    def goes_in_and_back(self, wanted):
        self.gateway.config["device"]["routes"] = wanted
        before = self.routes()
        self.up()
        self.assertEqual(self.ways(), ["braid0", "braid0"])
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])
        self.gateway.stop()
        self.assertEqual(self.routes(), before)

    def test_beside_a_default_route_with_a_metric(self):
        self.goes_in_and_back(EVERYTHING)

    def test_beside_a_default_route_by_router_advertisement(self):
        self.add_route("default", "via", "fd01::2", "dev", "wifi0", "proto", "ra", "metric", 1024)
        self.goes_in_and_back(EVERYTHING)

    def test_halves(self):
        self.goes_in_and_back(HALVES)

    def test_a_reload_takes_it_away_and_others_do_not(self):
        self.up()
        self.edge.ip("-6", "route", "flush", "table", TABLE)
        self.eventually(lambda: self.ways() == ["braid0", "braid0"], "the route is put back")
        self.gateway.config["device"]["routes"] = ["0.0.0.0/0"]
        self.gateway.reload()
        self.eventually(lambda: self.ways() == ["braid0", "wifi0"], "the route is gone")

    def told(self, program, *words):
        done = subprocess.run(self.edge.words(binary(program), *words, self.gateway.path), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=40)
        return done.stdout

    def test_a_family_that_is_left_out_is_told(self):
        self.gateway.config["device"]["routes"] = ["0.0.0.0/0"]
        self.up()
        self.assertEqual(self.ways(), ["braid0", "wifi0"])
        for words in (("braidctl", "check"), ("braidctl", "doctor"), ("braidd", "--check", "--config")):
            self.assertRegex(self.told(*words), IN_CLEAR, words)
        self.assertRegex(self.lab.log(self.gateway.name).read_text(), IN_CLEAR)
        refuse = ("unreachable", "default", "metric", "1")  # the remedy that doctor names
        self.edge.ip("-6", "route", "add", *refuse)
        try:
            self.assertNotRegex(self.told("braidctl", "doctor"), IN_CLEAR)
            self.assertEqual(self.ping(V4), 5)
            self.assertTrue(self.gateway.up(subflows=2), "over IPv6")
        finally:
            self.edge.ip("-6", "route", "del", *refuse)

    def test_nothing_is_told_of_what_takes_both(self):
        self.up()
        for words in (("braidctl", "check"), ("braidctl", "doctor"), ("braidd", "--check", "--config")):
            self.assertNotRegex(self.told(*words), IN_CLEAR, words)


class HostsOwnRoutes(EverythingCase):
    """Situations of hosts that kept the tunnel from its packets, or the host from its own, while the tunnel's routes
    were in the main table."""

    def stays(self):
        """Packets go into the tunnel, and a host of the LAN still gets its answers."""
        self.assertEqual(self.ways(), ["braid0", "braid0"])
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])
        for address in self.lab.sites[0].client_address:
            self.assertEqual(self.ping(address, namespace=self.edge), 5, "the LAN is not behind the tunnel")

    def test_a_default_route_without_a_metric(self):
        self.add_route("default", "via", "10.0.0.2", "dev", "wifi0")
        self.add_route("default", "via", "fd01::2", "dev", "wifi0", "metric", 1)
        before = self.everything_of_the_host()
        self.up()
        self.stays()
        self.gateway.stop()
        self.assertEqual(self.everything_of_the_host(), before)

    def test_a_lease_that_replaces_the_default_route(self):
        self.up()
        self.addCleanup(self.edge.run, "ip", "route", "del", "default", "metric", 0, check=False)
        self.edge.ip("route", "replace", "default", "via", "10.0.0.2", "dev", "wifi0", "proto", "dhcp")
        self.edge.ip("route", "replace", "default", "via", "10.0.1.2", "dev", "lte0", "proto", "dhcp")
        self.add_route("default", "via", "fd01::2", "dev", "wifi0", "proto", "ra", "metric", 1)
        self.stays()

    def test_a_later_modem_gets_its_default_route(self):
        self.up()
        for metric in (0, 50):
            self.add_route("default", "via", "10.0.1.2", "dev", "lte0", "metric", metric)
            self.add_route("default", "via", "fd01:0:0:1::2", "dev", "lte0", "metric", metric or 1)
        self.stays()

    def test_more_specific_routes_of_a_lease_or_an_advertisement(self):
        """DHCP's option 121, and route information (RFC 4191), take no packets out of the tunnel."""
        self.up()
        for network in ("0.0.0.0/1", "198.51.100.0/24", "198.51.100.1/32"):
            self.add_route(network, "via", "10.0.0.2", "dev", "wifi0", "proto", "dhcp")
        for network in ("2001:db8:77::/48", "2001:db8:77::1/128"):
            self.add_route(network, "via", "fd01::2", "dev", "wifi0", "proto", "ra")
        self.stays()

    def test_a_public_prefix_on_the_link(self):
        self.up()
        for address in ("198.51.100.77/24", "2001:db8:77::77/64"):
            self.edge.ip("address", "add", address, "dev", "wifi0", *(["nodad"] if ":" in address else []))
            self.addCleanup(self.edge.ip, "address", "del", address, "dev", "wifi0")
        self.stays()

    def test_networks_of_the_lan_stay_there(self):
        """A network of a LAN wins over a route that is as long or shorter, and not over a longer one."""
        longer = {"-4": "192.168.77.128/25", "-6": "fd00:0:0:77:8000::/65"}
        self.gateway.config["device"]["routes"] = [*EVERYTHING, "192.168.77.0/24", "fd00:0:0:77::/64",
                                                   *longer.values()]
        self.up()
        for address in ("192.168.77.1/24", "fd00:0:0:77::1/64"):  # while the daemon runs
            self.edge.ip("address", "add", address, "dev", "lan0", *(["nodad"] if ":" in address else []))
            self.addCleanup(self.edge.ip, "address", "del", address, "dev", "lan0")

        def way(family, to):
            return re.search(r" dev (\S+)", self.edge.ip(family, "route", "get", to))[1]

        self.eventually(lambda: (way("-4", "192.168.77.2"), way("-6", "fd00:0:0:77::2")) == ("lan0", "lan0"),
                        "the LAN is on its side")
        self.assertEqual((way("-4", "192.168.77.200"), way("-6", "fd00:0:0:77:8000::2")), ("braid0", "braid0"))
        self.stays()

    def test_an_endpoint_by_name(self):
        """The name is asked for after the routes were set, over each uplink."""
        self.name_the_hub()
        self.up()
        self.stays()
        asked = self.edge.ip("route", "get", PUBLIC[0], "ipproto", "udp", "dport", 53)
        self.assertIn("dev braid0", asked, "with the tunnel, questions go by it")

    def test_a_lease_is_renewed_by_its_uplink(self):
        self.up()
        self.assertIn("dev wifi0", self.edge.ip("route", "get", "10.0.0.2", "ipproto", "udp", "sport", 68, "dport", 67))

    # ---- replies

    def test_who_comes_in_by_an_uplink_is_answered_by_it(self):
        self.up()
        for index in (0, 1):
            near = [pair[0] for pair in self.lab.sites[0].link_addresses(index)]
            for address, source in zip(near, PUBLIC):
                with self.subTest(address=address), self.answering(self.edge, address, 2222) as listener:
                    # The same way there as back: else the concentrator would take the other link.
                    self.assertTrue(self.is_answered(listener, address, 2222, source))
                    self.assertEqual(self.ping(address, namespace=self.lab.concentrator, options=("-I", source)), 5)

    def test_a_forwarded_port_is_answered_by_its_uplink(self):
        self.edge.run("nft", "add table inet own; add chain inet own in { type nat hook prerouting priority -100; }; "
                      "add rule inet own in iifname lte0 tcp dport 8080 dnat ip to 192.168.10.2:80")
        self.addCleanup(self.edge.run, "nft", "delete table inet own")
        self.up()
        with self.answering(self.lab.client, "192.168.10.2", 80) as listener:
            self.assertTrue(self.is_answered(listener, "10.0.1.1", 8080, PUBLIC[0]))

    def test_other_bits_of_marks_stay(self):
        self.edge.run("nft", "add table inet own; "
                      "add chain inet own in { type filter hook prerouting priority -190; }; "
                      "add rule inet own in iifname wifi0 tcp dport 2222 ct mark set 0x3400 meta mark set 0x1200; "
                      "add chain inet own out { type filter hook output priority -190; }; "
                      "add rule inet own out tcp sport 2222 meta mark set 0x5600; "
                      "add chain inet own seen { type filter hook postrouting priority 0; }; "
                      "add rule inet own seen tcp sport 2222 meta mark and 0xff00 == 0x5600 "
                      "ct mark and 0xff00 == 0x3400 counter")
        self.addCleanup(self.edge.run, "nft", "delete table inet own")
        self.up()
        with self.answering(self.edge, "10.0.0.1", 2222) as listener:
            self.assertTrue(self.is_answered(listener, "10.0.0.1", 2222, PUBLIC[0]))
        self.assertGreater(self.edge.nft_packets("inet", "own"), 2)

    def test_marks_and_priorities_as_configured(self):
        device = self.gateway.config["device"]
        self.addCleanup(device.pop, "mark-mask")
        self.addCleanup(device.pop, "rule-priority")
        device.update({"mark-mask": "0xff0000", "rule-priority": 100})
        before = self.everything_of_the_host()
        self.up()
        self.assertIn("300:\tnot from all fwmark 0x400000/0xe00000 lookup 6599", self.edge.ip("rule"))
        self.stays()
        with self.answering(self.edge, "10.0.0.1", 2222) as listener:
            self.assertTrue(self.is_answered(listener, "10.0.0.1", 2222, PUBLIC[0]))
        self.gateway.stop()
        self.assertEqual(self.everything_of_the_host(), before)

    # ---- what others take away

    def test_what_others_take_away_is_put_back(self):
        self.up()
        for family in ANYWHERE:
            for words in (("rule", "del", "priority", RULE), ("route", "flush", "table", TABLE)):
                with self.subTest(family=family, words=words):
                    self.edge.ip(family, *words)
                    self.eventually(lambda: self.ways() == ["braid0", "braid0"], "it is put back")
        log = self.lab.log(self.gateway.name).read_text()
        for family in ("IPv4", "IPv6"):
            self.assertRegex(log, f"was gone from the host, and is put back: {family} rule 6200")
        self.assertRegex(log, "another program takes it away again and again")

    def test_after_a_kill_the_next_one_leaves_nothing(self):
        before = self.everything_of_the_host()
        self.up()
        self.gateway.stop(signal.SIGKILL)
        self.gateway.config["device"]["routes"] = ["0.0.0.0/0"]
        self.gateway.start()
        self.gateway.stop()
        self.assertEqual(self.everything_of_the_host(), before)


if __name__ == "__main__":
    unittest.main()
