"""The peer's name, and the host's own names, beside the programs that have the name servers of a host: NetworkManager,
systemd-resolved and resolvconf, in booted machines."""

import ipaddress
import re
import unittest

from booted_case import EVERYTHING, BootedCase
from lab.gateway import PORT
from lab.services import Dnsmasq
from lab.site import PUBLIC
from pair_case import V4

NAME, INSIDE = "hub.example.net", "files.corp.example"


class Names(BootedCase):
    """Everything goes into the tunnel, to an endpoint that only a name tells."""

    def setUp(self):
        super().setUp()
        config = self.gateway.config
        config["peers"][0].update({"prefixes": EVERYTHING, "endpoints": [f"{NAME}:{PORT}"]})
        config["device"]["routes"] = EVERYTHING
        self.addCleanup(config.pop, "dns", None)
        self.configure()
        self.far = [[str(ipaddress.ip_address(pair[1])) for pair in self.site.link_addresses(index)]
                    for index in range(2)]

    def switch_on(self, *servers):
        """With DNS servers that know the hub at these addresses, and one behind the tunnel that knows another name."""
        self.renew()
        for address in servers:
            server = Dnsmasq(self.lab, {NAME: PUBLIC[0]}, namespace=self.lab.concentrator, listen=address)
            self.addCleanup(self.lab.stop, server.process)
        self.addCleanup(self.lab.stop, Dnsmasq(self.lab, {INSIDE: "10.9.8.7"}, listen=V4).process)
        self.boot()

    def asked(self):
        """{uplink: (servers, where they are from)} by the status."""
        return {uplink["name"]: (uplink["resolvers"], uplink["resolvers_from"])
                for uplink in self.machine.status()["gateway"]["uplinks"]}

    def both_carry(self):
        self.machine.wait(lambda: {"wifi", "lte"} == {
            path["uplink"] for peer in (self.machine.status() or {"peers": []})["peers"]
            for path in peer["subflows"] if path["state"] == "active"}, "both uplinks carry")

    def doctor(self):
        return " ".join(self.machine.run("braidctl", "doctor", "edge", check=False, timeout=60).split())

    def test_each_uplinks_own_resolvers_by_network_manager(self):
        self.machine.remove("systemd-resolved")  # it would hand them to that
        self.serve_leases()
        self.network_manager()
        self.switch_on(self.far[0][0], self.far[1][1])
        self.reaches()
        self.both_carry()
        self.machine.run("systemctl", "restart", "braid@edge")  # all addresses are there by now
        self.both_carry()
        known = {"wifi": (self.far[0], "NetworkManager"), "lte": (self.far[1], "NetworkManager")}
        self.machine.wait(lambda: self.asked() == known, "each uplink asks its own servers", 40)
        said = self.machine.run("braidctl", "dns", "show", "edge")
        for uplink, (servers, _) in known.items():
            self.assertIn(f"uplink {uplink}: {', '.join(servers)} of NetworkManager", said)

    def test_systemd_resolved(self):
        """It has servers for the whole host, then some for each uplink, and those of `dns` behind the tunnel."""
        self.networkd()
        self.machine.write("etc/systemd/resolved.conf.d/lab.conf", f"[Resolve]\nDNS={' '.join(self.far[0])}\n")
        (self.machine.tree / "etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
        self.machine.enable("systemd-resolved")
        self.switch_on(self.far[0][0], self.far[1][1])
        self.reaches()
        self.assertEqual(self.asked()["wifi"], (self.far[0], "/run/systemd/resolve/resolv.conf"))
        for index, servers in enumerate(self.far):
            self.machine.run("resolvectl", "dns", self.site.device(index), *servers)
        self.machine.run("systemctl", "restart", "braid@edge")
        self.reaches()
        # It hands on to systemd-networkd what it is told of that one's interfaces.
        known = {"wifi": (self.far[0], "systemd-networkd"), "lte": (self.far[1], "systemd-networkd")}
        self.machine.wait(lambda: self.asked() == known, "each uplink asks its own servers", 40)
        self.gateway.config["dns"] = {"servers": [V4], "domains": ["corp.example"]}
        self.configure()
        self.machine.run("systemctl", "reload", "braid@edge")
        self.assertIn("10.9.8.7", self.machine.run("resolvectl", "query", INSIDE))
        self.assertEqual(self.machine.run("resolvectl", "domain", "braid0").split()[-1], "~corp.example")
        self.machine.run("systemctl", "stop", "braid@edge")
        self.assertNotIn(V4, self.machine.run("resolvectl", "dns"))

    def test_resolvconf_and_servers_that_the_tunnel_makes_unreachable(self):
        self.machine.remove("systemd-resolved")
        self.machine.add("resolvconf")
        self.serve_leases()
        self.ifupdown(f"  dns-nameservers {self.far[0][1]}\n")
        self.machine.enable("resolvconf")
        self.switch_on(self.far[0][0], self.far[1][0])
        self.reaches()
        self.assertEqual(self.asked()["wifi"], (self.far[0], "resolvconf"))
        said = self.doctor()
        for server in (self.far[0][0], self.far[0][1]):
            self.assertIn(f"the name server {server} (/etc/resolv.conf) is asked through the tunnel, and does not "
                          "answer", said)
        self.gateway.config["dns"] = {"servers": [V4]}
        self.configure()
        self.machine.run("systemctl", "reload", "braid@edge")
        servers = re.findall("^nameserver (.*)", self.machine.run("cat", "/etc/resolv.conf"), re.MULTILINE)
        self.assertEqual(servers[0], V4)
        self.assertNotIn("is asked through the tunnel, and does not answer", self.doctor())
        self.machine.run("systemctl", "stop", "braid@edge")
        self.assertNotIn(V4, self.machine.run("cat", "/etc/resolv.conf"))


if __name__ == "__main__":
    unittest.main()
