"""Uplinks by MAC address and altname: interfaces that get another name, swap their names, and come and go."""

import unittest

from lab import Wire
from pair_case import V4, PairCase


class Interfaces(PairCase):
    LINKS = [Wire("wifi"), Wire("lte")]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()
        cls.site = cls.lab.sites[0]
        for index, uplink in enumerate(cls.lab.edge_gateway.config["uplinks"]):
            del uplink["interface"]
            uplink["mac"] = cls.mac(cls.site.device(index))
        cls.lab.edge_gateway.config["uplinks"][1]["use"] = "metered"
        for gateway in cls.lab.gateways():
            gateway.start()
        cls.lab.edge_gateway.wait_up(subflows=2)

    @classmethod
    def mac(cls, device):
        return cls.lab.edge.run("cat", f"/sys/class/net/{device}/address").strip()

    def interfaces(self):
        return {u["name"]: (u["interface"], u["up"], u["use"]) for u in
                self.lab.edge_gateway.status()["gateway"]["uplinks"]}

    def working(self):
        return {path["uplink"] for path in self.lab.edge_gateway.paths() if path["state"] == "active"}

    def rename(self, *names):
        """Renames interfaces, (old, new) each, as udev does: while they are down."""
        edge = self.lab.edge
        for place, (old, _) in enumerate(names):
            edge.ip("link", "set", old, "down")
            edge.ip("link", "set", old, "name", f"moving{place}")
        for place, (_, new) in enumerate(names):
            edge.ip("link", "set", f"moving{place}", "name", new)
            edge.ip("link", "set", new, "up")

    def addressed(self, index, device):
        """Addresses and routes of the link of that index, whose device has another name now."""
        kept = self.site.device
        self.site.device = lambda number: device if number == index else kept(number)
        try:
            self.site.configure_uplink(index)
        finally:
            self.site.device = kept

    def test_1_a_rename_while_running(self):
        self.rename(("wifi0", "wan9"))
        self.addressed(0, "wan9")
        self.eventually(lambda: self.interfaces()["wifi"][:2] == ("wan9", True), "the uplink follows its interface")
        self.eventually(lambda: self.working() == {"wifi", "lte"}, "both carry")
        self.rename(("wan9", "wifi0"))
        self.addressed(0, "wifi0")
        self.eventually(lambda: self.working() == {"wifi", "lte"}, "both carry again")

    def test_2_names_that_are_swapped(self):
        self.rename(("wifi0", "lte0"), ("lte0", "wifi0"))
        self.addressed(0, "lte0")
        self.addressed(1, "wifi0")
        self.eventually(lambda: self.working() == {"wifi", "lte"}, "both carry", 20)
        self.assertEqual(self.interfaces(), {"wifi": ("lte0", True, "normal"), "lte": ("wifi0", True, "metered")})
        self.assertEqual(self.ping(V4), 5)
        self.rename(("wifi0", "lte0"), ("lte0", "wifi0"))
        for index in range(2):
            self.site.configure_uplink(index)
        self.eventually(lambda: self.working() == {"wifi", "lte"}, "both carry again", 20)

    def test_3_an_altname_that_comes_later(self):
        uplink = self.lab.edge_gateway.config["uplinks"][0]
        mac = uplink.pop("mac")
        uplink["interface"] = "the-radio-on-the-roof"
        self.lab.edge_gateway.reload()
        self.eventually(lambda: not self.interfaces()["wifi"][1], "there is no such interface")
        self.lab.edge.ip("link", "property", "add", "dev", "wifi0", "altname", "the-radio-on-the-roof")
        self.eventually(lambda: self.interfaces()["wifi"][:2] == ("wifi0", True), "the uplink is found")
        self.eventually(lambda: self.working() == {"wifi", "lte"}, "both carry")
        del uplink["interface"]
        uplink["mac"] = mac
        self.lab.edge_gateway.reload()


if __name__ == "__main__":
    unittest.main()
