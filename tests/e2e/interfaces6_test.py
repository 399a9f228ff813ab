"""Interfaces that get another name, swap their names, and come and go, with a peer that is reached over IPv6; and
addresses of one family that change."""

import subprocess
import unittest

import interfaces_test
from lab import Wire
from lab.gateway import PORT, binary
from lab.site import PUBLIC
from pair_case import V4, V6, PairCase


class OverIpv6(interfaces_test.Interfaces):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.edge_gateway.config["peers"][0]["endpoints"] = [f"[{PUBLIC[1]}]:{PORT}"]
        cls.lab.edge_gateway.restart()
        cls.lab.edge_gateway.wait_up(subflows=2)

    def test_1_a_rename_while_running(self):
        super().test_1_a_rename_while_running()
        self.assert_all_over_ipv6()

    def test_2_names_that_are_swapped(self):
        super().test_2_names_that_are_swapped()
        self.assert_all_over_ipv6()

    def test_3_an_altname_that_comes_later(self):
        super().test_3_an_altname_that_comes_later()
        self.assert_all_over_ipv6()

    def assert_all_over_ipv6(self):
        self.assertTrue(all(":" in path["local"] for path in self.lab.edge_gateway.paths()), "all are of IPv6")


class Routers(PairCase):
    """What doctor says of routers, where no daemon tells it which uplinks carry."""

    LINKS = [Wire("wifi"), Wire("lte")]
    ROUTERS = ("10.0.1.2", "fd01:0:0:1::2")
    GATEWAYS = False

    def test_one_that_did_not_answer_once_is_asked_again(self):
        self.lab.make_gateways()
        self.lab.gateway.start()
        self.lab.edge_gateway.write_config()
        for router in self.ROUTERS:
            self.lab.edge.ip("neigh", "replace", router, "dev", "lte0", "nud", "failed")
        self.assertNotIn("does not answer", self.doctor())
        self.lab.concentrator.ip("link", "set", "lte0", "arp", "off")
        self.lab.edge.ip("neigh", "flush", "dev", "lte0")
        for router in self.ROUTERS:
            self.lab.edge.ip("neigh", "replace", router, "dev", "lte0", "nud", "failed")
        told = self.doctor()
        for router in self.ROUTERS:
            self.assertIn(f"the router {router} does not answer", told)

    def doctor(self):
        return subprocess.run(self.lab.edge.words(binary("braidctl"), "doctor", self.lab.edge_gateway.path),
                              stdout=subprocess.PIPE, text=True, check=False, timeout=60).stdout


class Families(PairCase):
    LINKS = [Wire("wifi"), Wire("lte")]
    GATEWAYS = False
    CHANGED = {4: ("10.0.0.1/24", "10.0.0.9/24"), 6: ("fd01::1/64", "fd01::9/64")}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()
        cls.lab.edge_gateway.config["peers"][0]["endpoints"] = [f"{PUBLIC[0]}:{PORT}", f"[{PUBLIC[1]}]:{PORT}"]
        for gateway in cls.lab.gateways():
            gateway.start()
        cls.lab.edge_gateway.wait_up(subflows=4)

    def paths(self, version):
        """{number of a subflow of wifi: (its address, state)} of one family, without those that are closed."""
        return {path["id"]: (path["local"], path["state"]) for path in self.lab.edge_gateway.paths()
                if path["uplink"] == "wifi" and (":" in path["local"]) == (version == 6) and path["state"] != "closed"}

    def test_one_familys_change_leaves_the_others_subflow(self):
        edge, gateway = self.lab.edge, self.lab.edge_gateway
        for version, other in ((4, 6), (6, 4)):
            old, new = self.CHANGED[version]
            for gone, come in ((old, new), (new, old)):
                with self.subTest(gone=gone, come=come):
                    self.eventually(lambda other=other: [state for _, state in self.paths(other).values()] ==
                                    ["active"], "the other family carries")
                    before = self.paths(other)
                    edge.ip("address", "del", gone, "dev", "wifi0")
                    if version == 4:
                        edge.ip("-4", "route", "flush", "dev", "wifi0")
                    edge.address("wifi0", come)
                    far = self.lab.sites[0].link_addresses(0)[version == 6][1]
                    edge.route("::/0" if version == 6 else "0.0.0.0/0", "via", far, "dev", "wifi0", "metric", 100)
                    address = come.partition("/")[0]
                    self.eventually(lambda version=version, address=address: any(
                        address in local and state == "active" for local, state in self.paths(version).values()),
                        "the new address carries")
                    self.assertEqual(self.paths(other), before)
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])
        gateway.wait_up(subflows=4)


if __name__ == "__main__":
    unittest.main()
