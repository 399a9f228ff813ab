"""`device.routes` for all traffic, beside the hosts' default routes: the routes that packets take, what remains at the
end, and the messages about an IP version that is left out."""

import re
import subprocess
import unittest

from lab import Link
from lab.gateway import PORT, binary
from lab.site import PUBLIC
from pair_case import V4, V6, PairCase

ANYWHERE = {"-4": "198.51.100.1", "-6": "2001:db8:77::1"}
EVERYTHING = ["0.0.0.0/0", "::/0"]
HALVES = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"]
IN_CLEAR = r"device\.routes:? take all of IPv4 .*IPv6"


class Everything(PairCase):
    LINKS = [Link("wifi", 100, 4), Link("lte", 100, 4)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.edge_gateway.stop()

    def setUp(self):
        self.edge, self.gateway = self.lab.edge, self.lab.edge_gateway
        self.gateway.config["peers"][0]["endpoints"] = [f"[{PUBLIC[1]}]:{PORT}"]  # by IPv6, past the tunnel
        self.gateway.config["peers"][0]["prefixes"] = EVERYTHING
        self.gateway.config["device"]["routes"] = EVERYTHING

    def tearDown(self):
        if self.gateway.process:
            self.gateway.stop()

    def routes(self):
        return [re.sub(r" expires \S+", "", self.edge.ip(family, "route", "show", "table", "all"))
                for family in ANYWHERE]

    def ways(self):
        """The device by which packets leave to destinations that only a default route covers."""
        found = [re.search(r" dev (\S+)", self.edge.ip(family, "route", "get", to)) for family, to in ANYWHERE.items()]
        return [match[1] for match in found]

    def up(self):
        self.gateway.start()
        self.gateway.wait_up(subflows=2)

    def default6(self, *words):
        """Adds another IPv6 default route by the first uplink until the test ends."""
        route = ("default", "via", "fd01::2", "dev", "wifi0", *words)
        self.edge.ip("-6", "route", "add", *route)
        self.addCleanup(self.edge.ip, "-6", "route", "del", *route)

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
        self.default6("proto", "ra", "metric", 1024)
        self.goes_in_and_back(EVERYTHING)

    def test_halves(self):
        self.goes_in_and_back(HALVES)

    def test_a_reload_takes_it_away_and_others_do_not(self):
        self.up()
        self.edge.ip("-6", "route", "del", "default", "dev", "braid0")
        self.eventually(lambda: self.ways() == ["braid0", "braid0"], "the route is put back")
        self.gateway.config["device"]["routes"] = ["0.0.0.0/0"]
        self.gateway.reload()
        self.eventually(lambda: self.ways() == ["braid0", "wifi0"], "the route is gone")

    def test_what_is_there_with_that_metric_is_not_replaced(self):
        self.default6("metric", 1)
        before = self.routes()
        self.gateway.write_config()
        done = subprocess.run(self.edge.words(binary("braidd"), "--config", self.gateway.path), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "cannot add route default dev braid0 metric 1: there is already route default "
                                      "via fd01::2 dev wifi0 metric 1 .*; remove one of them")
        self.assertEqual(self.routes(), before)

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


if __name__ == "__main__":
    unittest.main()
