"""The peer's host name: asked over each uplink by that uplink's servers, past a tunnel that takes everything."""

import contextlib
import ipaddress
import json
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from lab import binary, run
from lab.gateway import PORT
from lab.packets import Capture, Packet
from lab.services import Dnsmasq
from lab.site import PUBLIC
from pair_case import V4, EdgeStartsCase

NAME = "hub.example.net"
PORTAL = "10.66.66.66"  # what a captive portal says of every name
ON_LINK = "10.0.0.66"  # the page of one that is on the uplink's link
NOBODY = ["192.0.2.1", "3fff::1"]  # whom Braid asks for a page
KNOCKED = (80, 81, 443, 7777)
ELSEWHERE = "77"  # a routing table of the host
PROBE = 6  # seconds after which a request of the daemon is over
CAUGHT = 8000  # the port of its web server, to which requests are led
EVERYTHING = ["0.0.0.0/0", "::/0"]
LAN = ["192.168.10.0/24", "fd00:0:0:10::/64"]


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


class Arrivals(Capture):
    """What arrives at a device: (source, target, protocol, target's port) of each IP packet."""

    def __init__(self, namespace, device):
        self.seen = []
        super().__init__(namespace, [device], self._note)

    def _note(self, _, ethertype, data):
        if ethertype in (0x0800, 0x86DD):
            packet = Packet(data)
            source, target = (str(ipaddress.ip_address(a)) for a in (packet.source, packet.target))
            self.seen.append((source, target, packet.protocol, packet.ports[1]))


class Portals(EdgeStartsCase):
    """The first uplink is behind a captive portal, whose page is on its link; the second one is dead. The edge takes
    everything and guards it."""

    def setUp(self):
        super().setUp()
        self.hub = self.lab.concentrator
        config = self.gateway.config
        self.addCleanup(config.update, json.loads(json.dumps(config)))
        self.addCleanup(config.pop, "portal-check", None)
        config["device"] |= {"routes": EVERYTHING, "when-down": "block", "networks": LAN}
        config["peers"][0]["prefixes"] = EVERYTHING
        self.addCleanup(self.edge.run, binary("braidctl"), "release", self.gateway.path)
        self.addCleanup(self.hub.run, "nft", "flush", "ruleset")
        self.lab.links.set("lte", down=True)
        self.addCleanup(self.lab.links.set, "lte", down=False)
        self.arrivals = Arrivals(self.hub, "wifi0")
        self.addCleanup(self.arrivals.close)

    def tearDown(self):
        if self.gateway.process:
            self.gateway.stop()

    def start(self):
        """Before that there is no guard, and a connection of another test may end in clear."""
        self.gateway.start()
        self.arrivals.seen.clear()

    def serve_pages(self, address):
        """The portal's web server: a page, to which it redirects all others."""
        folder = self.lab.directory / "portal"
        folder.mkdir(exist_ok=True)
        own = f"[{address}]" if ":" in address else address
        temporary = "".join(f"{name}_temp_path {folder}; " for name in ("client_body", "proxy", "fastcgi", "uwsgi",
                                                                        "scgi"))
        (folder / "nginx.conf").write_text(f"""
            daemon off; master_process off; user root; pid {folder}/pid; error_log stderr; events {{}}
            http {{
              access_log {folder}/log; {temporary}
              server {{
                listen 0.0.0.0:{CAUGHT}; listen [::]:{CAUGHT};
                location = /login {{ return 200 log-in; }}
                location / {{ return 302 http://{own}/login; }}
              }}
            }}
            """, encoding="ascii")
        (folder / "log").unlink(missing_ok=True)
        process = self.lab.start(self.hub, "portal", ["nginx", "-e", "stderr", "-c", folder / "nginx.conf"])
        self.addCleanup(self.lab.stop, process)
        self.lab.wait_for(lambda: self.hub.run("ss", "-Hltn", f"sport = :{CAUGHT}"), "the portal to listen")
        length = 128 if ":" in address else 32
        self.hub.address("wifi0", f"{address}/{length}")
        self.addCleanup(self.hub.ip, "address", "del", f"{address}/{length}", "dev", "wifi0")

    def shut(self, condition=""):
        """Web requests that come in by wifi and meet the condition go to the portal; nothing else passes there."""
        self.hub.run("nft", f"""table inet portal {{
            chain caught {{
              type nat hook prerouting priority -100; iifname wifi0 tcp dport 80 {condition} redirect to :{CAUGHT}
            }}
            chain shut {{
              type filter hook input priority 0; iifname wifi0 ct status dnat accept
              iifname wifi0 udp dport 53 accept; iifname wifi0 meta l4proto ipv6-icmp accept; iifname wifi0 drop
            }}
            chain through {{
              type filter hook forward priority 0; iifname wifi0 drop
            }}
        }}""")

    def log_in(self):
        self.hub.run("nft", "delete", "table", "inet", "portal")

    def loads(self, url, namespace=None):
        """What a host of the LAN, or another one, gets of that page; empty: nothing."""
        return (namespace or self.lab.client).run("curl", "-sg", "--max-time", "2", url, check=False)

    @staticmethod
    def page(address):
        return f"http://[{address}]/login" if ":" in address else f"http://{address}/login"

    def status(self):
        return {u["name"]: u for u in self.gateway.status()["gateway"]["uplinks"]}["wifi"]

    def is_found(self, address):
        self.eventually(lambda: self.status()["portal"] == self.page(address), "the portal is found", 60)
        self.eventually(lambda: "braid_portal-" in self.edge.run("nft", "list", "ruleset"), "a way is opened")

    def knock(self, *addresses):
        """A host of the LAN tries TCP and UDP ports of each address. Returns (address, protocol, port) of what arrives
        at the portal's side within half a second."""
        before = len(self.arrivals.seen)
        ends = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                for port in KNOCKED:
                    end = self.lab.client.inside(lambda f=family, k=kind: socket.socket(f, k | socket.SOCK_NONBLOCK))
                    ends.append(end)
                    with contextlib.suppress(OSError):
                        end.connect((address, port))
                        end.send(b"in clear?")
        time.sleep(0.5)
        for end in ends:
            end.close()
        return {seen[1:] for seen in self.arrivals.seen[before:] if seen[1] in addresses and seen[3] in KNOCKED}

    def is_shut(self, *addresses):
        """By what the kernel has and does: no rule, no route, no packet."""
        self.assertNotIn("braid_portal-", self.edge.run("nft", "list", "ruleset"))
        routes = "".join(self.edge.run("ip", family, "route", "show", "table", "all") for family in ("-4", "-6"))
        for address in addresses:
            self.assertNotRegex(routes, rf"(?m)^(\S+ )?{re.escape(address)}(/\d+)? ")
            self.assertEqual(self.loads(self.page(address)), "")
        self.assertEqual(self.knock(*addresses), set())

    def no_host_of_the_lan_is_seen(self):
        self.assertTrue(self.arrivals.seen)
        self.assertEqual({seen for seen in self.arrivals.seen if seen[0] in self.lab.sites[0].client_address}, set())

    def is_open_until_the_login(self, address, nobody, edge):
        """`edge`: its address on the link. `nobody`: the address that nobody has, of this family."""
        self.start()
        self.assertEqual(self.loads(self.page(address)), "", "it is not found yet")
        self.is_found(address)
        self.assertIn(address, self.status()["portal_open"])
        for namespace in (self.lab.client, self.edge):
            self.assertEqual(self.loads(self.page(address), namespace), "log-in")
        log = (self.lab.directory / "portal" / "log").read_text(encoding="ascii")
        visitors = {line.split()[0] for line in log.splitlines() if "/login" in line}
        self.assertEqual(visitors, {edge}, "hosts of the LAN are masked")
        other = address[:-1] + "9"
        self.assertEqual(self.knock(address, nobody, other),
                         {(a, socket.IPPROTO_TCP, port) for a in (address, nobody) for port in (80, 443)})
        done = subprocess.run(self.edge.words(binary("braidctl"), "doctor", self.gateway.path), text=True,
                              stdout=subprocess.PIPE, timeout=60, check=False)
        self.assertIn(f"a captive portal waits for a login at {self.page(address)}", done.stdout)
        events = json.loads(self.gateway.ctl("explain", "--json"))["events"]
        self.assertIn(("portal", "wifi"), {(event["kind"], event["path"]) for event in events})
        self.log_in()

    def is_shut_by_then(self, address, nobody):
        self.eventually(lambda: self.status()["portal"] is None, "no portal any more")
        time.sleep(PROBE)
        self.is_shut(address, nobody)
        self.no_host_of_the_lan_is_seen()

    def test_a_login_page(self):
        """The portal's name server gives its address for every name, and nobody answers at another address."""
        self.gateway.config["peers"][0]["endpoints"] = [f"{NAME}:{PORT}"]
        far = self.lab.sites[0].link_addresses(0)[0][1]
        self.gateway.config["uplinks"][0]["resolvers"] = [far]
        self.serve_pages(ON_LINK)
        self.shut(f"ip daddr {ON_LINK}")
        liar = Dnsmasq(self.lab, {NAME: ON_LINK}, namespace=self.hub, listen=far)
        self.addCleanup(self.lab.stop, liar.process)
        self.is_open_until_the_login(ON_LINK, NOBODY[0], edge="10.0.0.1")
        self.lab.stop(liar.process)
        server = Dnsmasq(self.lab, {NAME: PUBLIC[0]}, namespace=self.hub, listen=far)
        self.addCleanup(self.lab.stop, server.process)
        self.gateway.wait_up(timeout=60)
        self.is_shut_by_then(ON_LINK, NOBODY[0])

    def catches_every_request(self, endpoint, address, nobody, edge):
        self.gateway.config["peers"][0]["endpoints"] = [endpoint]
        self.serve_pages(address)
        self.shut()
        self.is_open_until_the_login(address, nobody, edge)
        self.gateway.wait_up(timeout=60)
        self.is_shut_by_then(address, nobody)

    def test_a_portal_that_catches_every_request(self):
        self.catches_every_request(f"{PUBLIC[0]}:{PORT}", ON_LINK, NOBODY[0], edge="10.0.0.1")

    def test_a_portal_that_catches_every_request_over_ipv6(self):
        self.edge.ip("-4", "address", "flush", "dev", "wifi0")
        self.addCleanup(self.lab.restore_uplink, 0)
        self.catches_every_request(f"[{PUBLIC[1]}]:{PORT}", "fd01::66", NOBODY[1], edge="fd01::1")

    def test_a_page_elsewhere(self):
        """It is reached with `portal-check: any` alone."""
        self.serve_pages(PORTAL)
        self.shut()
        self.start()
        self.is_found(PORTAL)
        self.assertEqual(self.loads(self.page(NOBODY[0])), "log-in")
        self.assertEqual(self.loads(self.page(PORTAL)), "")
        self.assertEqual({target for target, *_ in self.knock(PORTAL, NOBODY[0])}, {NOBODY[0]})
        self.assertIn(f"not {PORTAL}: it is not on that uplink's own link", self.status()["portal_open"])
        self.gateway.config["portal-check"] = "any"
        self.gateway.reload()
        self.eventually(lambda: self.loads(self.page(PORTAL)) == "log-in", "it is reached")
        self.no_host_of_the_lan_is_seen()

    def test_while_another_uplink_works(self):
        """Nothing is opened but what nobody has, whatever the portal says."""
        self.lab.links.set("lte", down=False)
        self.gateway.config["portal-check"] = "any"
        self.serve_pages(ON_LINK)
        self.shut()
        self.start()
        self.gateway.wait_up()
        self.is_found(ON_LINK)
        self.assertEqual(self.loads(self.page(NOBODY[0])), "log-in")
        self.loads(self.page(ON_LINK))
        self.knock(ON_LINK, PORTAL, NOBODY[0])
        self.assertEqual({seen[1:] for seen in self.arrivals.seen if seen[1] in (ON_LINK, PORTAL)}, set())
        self.assertIn("a peer is up", self.status()["portal_open"])
        self.no_host_of_the_lan_is_seen()

    def test_a_route_of_the_host_leads_elsewhere(self):
        """What is let out to a portal leaves by its uplink or not at all."""
        self.lab.links.set("lte", down=False)
        self.serve_pages(ON_LINK)
        self.shut()
        self.start()
        self.gateway.wait_up()
        self.is_found(ON_LINK)
        elsewhere = Arrivals(self.hub, "lte0")
        self.addCleanup(elsewhere.close)
        rule = ["pref", "1", "to", NOBODY[0], "lookup", ELSEWHERE]
        self.edge.route("default", "via", self.lab.sites[0].link_addresses(1)[0][1], "dev", "lte0", "table", ELSEWHERE)
        self.edge.ip("rule", "add", *rule)
        self.addCleanup(self.edge.ip, "rule", "del", *rule)
        self.assertEqual(self.loads(self.page(NOBODY[0])), "")
        self.knock(NOBODY[0])
        self.lab.client.run("ping", "-c", "1", "-W", "2", V4)
        self.assertTrue(elsewhere.seen, "the tunnel's datagrams leave there")
        self.assertEqual([seen for seen in elsewhere.seen if seen[1] == NOBODY[0]], [])

    def test_nothing_is_open_when_the_daemon_ends(self):
        self.serve_pages(ON_LINK)
        self.shut()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number=number):
                self.start()
                self.is_found(ON_LINK)
                self.assertEqual(self.loads(self.page(ON_LINK)), "log-in")
                self.gateway.stop(number)
                self.is_shut(ON_LINK, NOBODY[0])
                self.no_host_of_the_lan_is_seen()


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
