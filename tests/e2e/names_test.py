"""The peer's host name: asked over each uplink by that uplink's servers, past a tunnel that takes everything."""

import pathlib
import tempfile
import unittest

from lab import binary, run
from lab.gateway import PORT
from lab.services import Dnsmasq
from lab.site import PUBLIC
from pair_case import V4, EdgeStartsCase

NAME = "hub.example.net"
PORTAL = "10.66.66.66"  # what a captive portal says of every name


class Names(EdgeStartsCase):
    def setUp(self):
        super().setUp()
        self.far = [self.lab.sites[0].link_addresses(i)[0][1] for i in range(2)]
        peer = self.gateway.config["peers"][0]
        peer["endpoints"] = [f"{NAME}:{PORT}"]
        peer["prefixes"] = ["0.0.0.0/0"]
        self.gateway.config["device"]["routes"] = ["0.0.0.0/0"]
        self.gateway.wrapper = []
        for i, uplink in enumerate(self.gateway.config["uplinks"]):
            uplink["resolvers"] = [self.far[i]]

    def serve(self, *answers):
        """A DNS server at the far end of each link, with its answer to the name."""
        for far, answer in zip(self.far, answers):
            if answer is None:
                continue
            server = Dnsmasq(self.lab, {NAME: answer}, namespace=self.lab.concentrator, listen=far)
            self.addCleanup(self.lab.stop, server.process)

    def working(self):
        return {path["uplink"] for path in self.gateway.paths() if path["state"] == "active"}

    def asked(self):
        """{uplink: (servers, who names them)} by the status."""
        return {u["name"]: (u["resolvers"], u["resolvers_from"]) for u in self.gateway.status()["gateway"]["uplinks"]}

    def test_with_a_route_for_everything(self):
        self.serve(PUBLIC[0], PUBLIC[0])
        self.up()
        self.assertEqual(self.working(), {"wifi", "lte"})
        self.assertEqual(self.asked(), {"wifi": ([self.far[0]], "configuration"),
                                        "lte": ([self.far[1]], "configuration")})
        self.assertEqual(self.ping(V4), 5)

    def test_a_portal_on_one_uplink(self):
        self.serve(PORTAL, PUBLIC[0])
        self.gateway.start()
        self.eventually(lambda: self.working() == {"lte"}, "the other uplink works")
        self.assertEqual(self.ping(V4), 5)
        self.eventually(lambda: self.working() == {"wifi", "lte"}, "the other's answer is tried on the first", 45)

    def test_an_uplink_without_a_server_takes_the_others_answer(self):
        self.serve(None, PUBLIC[0])
        self.up()
        self.assertEqual(self.working(), {"wifi", "lte"})

    def test_the_servers_of_each_interface_are_known_from_its_dhcp_client(self):
        self.serve(PUBLIC[0], PUBLIC[0])
        files = "; ".join(f"echo nameserver {far} > /run/resolvconf/interface/{link.name}0.dhclient"
                          for far, link in zip(self.far, self.LINKS))
        self.gateway.wrapper = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /run && "
                                f"mkdir -p /run/resolvconf/interface && {{ {files}; }} && exec \"$@\"", "sh"]
        for uplink in self.gateway.config["uplinks"]:
            del uplink["resolvers"]
        self.up()
        self.assertEqual(self.asked(), {"wifi": ([self.far[0]], "resolvconf"), "lte": ([self.far[1]], "resolvconf")})


class Handing(unittest.TestCase):
    """`braidctl dns`: what it calls. The programs are replaced by one that writes down its words and its input."""

    CONFIG = """
identity: {key: edge.key, certificate: edge.crt}
device: {name: lo, addresses: [10.99.0.2/24], routes: [10.2.0.0/16]}
uplinks: [{name: dsl, interface: eth7}]
peers:
  - {name: hub, pin: "sha256:/2YlCK6pFPNLhHtTHWkd4cGJBBvMTVJx1Yy9oVWjvVs=", endpoints: [192.0.2.1:4433],
     prefixes: [10.2.0.0/16]}
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("resolvectl", "resolvconf"):
            program = self.folder / name
            program.write_text(f"#!/bin/sh\necho {name} \"$@\" >> {self.folder}/calls\n"
                               f"[ \"$1\" != -a ] || cat >> {self.folder}/calls\n", encoding="ascii")
            program.chmod(0o755)

    def calls(self, dns, *verbs, resolved, between="true"):
        """What the programs were called with, by these verbs one after the other, on a host of their own /run.
        `between`: a shell command that changes the configuration, $0, before each further verb."""
        file = self.folder / "edge.yaml"
        file.write_text(self.CONFIG + dns, encoding="ascii")
        script = "mount -t tmpfs none /run; " + ("mkdir -p /run/systemd/resolve; "
                                                 "touch /run/systemd/resolve/stub-resolv.conf; " if resolved else "")
        script += f"; {between}; ".join(f"{binary('braidctl')} dns {verb} $0 || exit 1" for verb in verbs)
        run("unshare", "--mount", "sh", "-c", f"PATH={self.folder}:$PATH; {script}", file)
        written = self.folder / "calls"
        text = written.read_text(encoding="ascii") if written.exists() else ""
        written.unlink(missing_ok=True)
        return text.splitlines()

    def test_systemd_resolved(self):
        self.assertEqual(self.calls("dns: {servers: [10.2.0.53]}", "set", "remove", "remove", resolved=True),
                         ["resolvectl dns lo 10.2.0.53", "resolvectl domain lo ~.",
                          "resolvectl default-route lo yes", "resolvectl revert lo"])
        self.assertEqual(self.calls("dns: {servers: [10.2.0.53], domains: [corp.example]}", "set", resolved=True),
                         ["resolvectl dns lo 10.2.0.53", "resolvectl domain lo ~corp.example",
                          "resolvectl default-route lo no"])

    def test_resolvconf(self):
        self.assertEqual(self.calls("dns: {servers: [10.2.0.53, 10.2.0.54]}", "set", "remove", resolved=False),
                         ["resolvconf -a tun.lo -m 0 -x", "nameserver 10.2.0.53", "nameserver 10.2.0.54",
                          "resolvconf -d tun.lo"])
        with self.assertRaisesRegex(RuntimeError, "only systemd-resolved asks other servers for some domains"):
            self.calls("dns: {servers: [10.2.0.53], domains: [corp.example]}", "set", resolved=False)

    def test_it_is_taken_back_whatever_the_configuration_says_by_then(self):
        servers = "dns: {servers: [10.2.0.53]}"
        for change in ("sed -i s/lo,/eth9,/ $0", "echo { > $0", "rm $0"):
            with self.subTest(change=change):
                self.assertEqual(self.calls(servers, "set", "remove", resolved=True, between=change)[3:],
                                 ["resolvectl revert lo"])
                self.assertEqual(self.calls(servers, "set", "remove", resolved=False, between=change)[2:],
                                 ["resolvconf -d tun.lo"])

    def test_a_renamed_device_has_the_servers_alone(self):
        self.assertEqual(self.calls("dns: {servers: [10.2.0.53]}", "set", "set", resolved=False,
                                    between="sed -i s/lo,/eth9,/ $0")[2:],
                         ["resolvconf -d tun.lo", "resolvconf -a tun.eth9 -m 0 -x", "nameserver 10.2.0.53"])

    def test_what_others_have_set_stays(self):
        for resolved in (True, False):
            self.assertEqual(self.calls("", "set", "remove", resolved=resolved), [])


if __name__ == "__main__":
    unittest.main()
