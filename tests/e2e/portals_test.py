"""Captive portals: hosts of the LAN reach their login pages past a guarded tunnel that takes everything, and nothing
else."""

import contextlib
import ipaddress
import json
import re
import signal
import socket
import subprocess
import time
import unittest

from lab import binary
from lab.gateway import PORT
from lab.packets import Capture, Packet
from lab.services import Dnsmasq
from lab.site import PUBLIC
from pair_case import V4, EdgeStartsCase

NAME = "hub.example.net"
PORTAL = "10.66.66.66"  # the page of a captive portal that is elsewhere
ON_LINK = "10.0.0.66"  # the page of one that is on the link of wifi
ON_LTE = "10.0.1.66"  # and on that of lte
NOBODY = ["192.0.2.1", "3fff::1"]  # Braid asks these for a page
OPEN = (80, 443)
OTHER = 8080  # the port of a page that is served at none of these
KNOCKED = (*OPEN, 81, OTHER, 7777)
ELSEWHERE = "77"  # a routing table of the host
PROBE = 6  # seconds after which a request of the daemon is over
CAUGHT = {"wifi": 8000, "lte": 8001}  # the ports of the portals' web servers, to which requests are led
EVERYTHING = ["0.0.0.0/0", "::/0"]
LAN = ["192.168.10.0/24", "fd00:0:0:10::/64"]


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


class PortalCase(EdgeStartsCase):
    """Uplinks behind captive portals. The edge takes everything and guards it."""

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
        self.arrivals = Arrivals(self.hub, "wifi0")
        self.addCleanup(self.arrivals.close)

    def tearDown(self):
        if self.gateway.process:
            self.gateway.stop()

    def start(self):
        """Before that there is no guard, and a connection of another test may end in clear."""
        self.gateway.start()
        self.arrivals.seen.clear()

    def serve_pages(self, address, uplink="wifi", port=80, redirects=True):
        """The portal's web server: a page, to which it redirects all others, or which it gives instead of them."""
        folder, device = self.lab.directory / f"portal-{uplink}", f"{uplink}0"
        folder.mkdir(exist_ok=True)
        own = f"[{address}]" if ":" in address else address
        temporary = "".join(f"{name}_temp_path {folder}; " for name in ("client_body", "proxy", "fastcgi", "uwsgi",
                                                                        "scgi"))
        page = f"log-in by {uplink}"
        others = f"302 http://{own}{'' if port == 80 else f':{port}'}/login" if redirects else f"511 '{page}'"
        (folder / "nginx.conf").write_text(f"""
            daemon off; master_process off; user root; pid {folder}/pid; error_log stderr; events {{}}
            http {{
              access_log {folder}/log; {temporary}
              server {{
                listen 0.0.0.0:{CAUGHT[uplink]}; listen [::]:{CAUGHT[uplink]};
                location = /login {{ return 200 '{page}'; }}
                location / {{ return {others}; }}
              }}
            }}
            """, encoding="ascii")
        (folder / "log").unlink(missing_ok=True)
        process = self.lab.start(self.hub, f"portal-{uplink}", ["nginx", "-e", "stderr", "-c", folder / "nginx.conf"])
        self.addCleanup(self.lab.stop, process)
        self.lab.wait_for(lambda: self.hub.run("ss", "-Hltn", f"sport = :{CAUGHT[uplink]}"), "the portal to listen")
        length = 128 if ":" in address else 32
        self.hub.address(device, f"{address}/{length}")
        self.addCleanup(self.hub.ip, "address", "del", f"{address}/{length}", "dev", device)

    def shut(self, condition="", uplink="wifi"):
        """Web requests that come in by the uplink and meet the condition go to its portal. Nothing else passes."""
        device = f"{uplink}0"
        self.hub.run("nft", f"""table inet portal-{uplink} {{
            chain caught {{
              type nat hook prerouting priority -100
              iifname {device} tcp dport {{ 80, {OTHER} }} {condition} redirect to :{CAUGHT[uplink]}
            }}
            chain shut {{
              type filter hook input priority 0; iifname {device} ct status dnat accept
              iifname {device} udp dport 53 accept; iifname {device} meta l4proto ipv6-icmp accept
              iifname {device} drop
            }}
            chain through {{
              type filter hook forward priority 0; iifname {device} drop
            }}
        }}""")

    def log_in(self, uplink="wifi"):
        self.hub.run("nft", "delete", "table", "inet", f"portal-{uplink}")

    def loads(self, url, namespace=None):
        """What a host of the LAN, or another one, gets of that page; empty: nothing."""
        return (namespace or self.lab.client).run("curl", "-sg", "--max-time", "2", url, check=False)

    @staticmethod
    def page(address):
        return f"http://[{address}]/login" if ":" in address else f"http://{address}/login"

    def status(self, uplink="wifi"):
        return {u["name"]: u for u in self.gateway.status()["gateway"]["uplinks"]}[uplink]

    def told(self):
        """What doctor says."""
        return subprocess.run(self.edge.words(binary("braidctl"), "doctor", self.gateway.path), text=True,
                              stdout=subprocess.PIPE, timeout=60, check=False).stdout

    def announced(self):
        """The uplinks for which there were events about portals."""
        events = json.loads(self.gateway.ctl("explain", "--json"))["events"]
        return {event["path"] for event in events if event["kind"] == "portal"}

    def is_found(self, *pages, uplink="wifi"):
        self.eventually(lambda: self.status(uplink)["portal"] in pages, f"the portal of {uplink} is found", 60)
        self.eventually(lambda: "braid_portal-" in self.edge.run("nft", "list", "ruleset"), "a way is opened")

    def knock(self, *addresses, namespace=None):
        """A host of the LAN, or another one, tries TCP and UDP ports of each address. Returns (address, protocol, port)
        of what arrives at the portal's side within half a second."""
        before = len(self.arrivals.seen)
        ends = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                for port in KNOCKED:
                    end = (namespace or self.lab.client).inside(
                        lambda f=family, k=kind: socket.socket(f, k | socket.SOCK_NONBLOCK))
                    ends.append(end)
                    with contextlib.suppress(OSError):
                        end.connect((address, port))
                        end.send(b"in clear?")
        time.sleep(0.5)
        found = {seen[1:] for seen in self.arrivals.seen[before:] if seen[1] in addresses and seen[3] in KNOCKED}
        for end in ends:
            end.close()
        time.sleep(0.1)  # until the ends of those that were connected have arrived
        return found

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

    @staticmethod
    def tcp(ports, *addresses):
        """As knock() has it."""
        return {(address, socket.IPPROTO_TCP, port) for address in addresses for port in ports}


class Portals(PortalCase):
    """The first uplink is behind a captive portal, whose page is on its link; the second one is dead."""

    def setUp(self):
        super().setUp()
        self.lab.links.set("lte", down=True)
        self.addCleanup(self.lab.links.set, "lte", down=False)

    def is_open_until_the_login(self, address, nobody, edge):
        """`edge`: its address on the link. `nobody`: the address that nobody has, of this family."""
        self.start()
        self.assertEqual(self.loads(self.page(address)), "", "it is not found yet")
        self.is_found(self.page(address))
        self.assertIn(address, self.status()["portal_open"])
        for namespace in (self.lab.client, self.edge):
            self.assertEqual(self.loads(self.page(address), namespace), "log-in by wifi")
        log = (self.lab.directory / "portal-wifi" / "log").read_text(encoding="ascii")
        visitors = {line.split()[0] for line in log.splitlines() if "/login" in line}
        self.assertEqual(visitors, {edge}, "hosts of the LAN are masked")
        other = address[:-1] + "9"
        self.assertEqual(self.knock(address, nobody, other), self.tcp(OPEN, address, nobody))
        self.assertIn(f"a captive portal waits for a login at {self.page(address)}", self.told())
        self.assertEqual(self.announced(), {"wifi"})
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
        self.is_found(self.page(PORTAL))
        self.assertEqual(self.loads(self.page(NOBODY[0])), "log-in by wifi")
        self.assertEqual(self.loads(self.page(PORTAL)), "")
        self.assertEqual({target for target, *_ in self.knock(PORTAL, NOBODY[0])}, {NOBODY[0]})
        self.assertIn(f"not {PORTAL}: it is not on that uplink's own link", self.status()["portal_open"])
        self.gateway.config["portal-check"] = "any"
        self.gateway.reload()
        self.eventually(lambda: self.loads(self.page(PORTAL)) == "log-in by wifi", "it is reached")
        self.no_host_of_the_lan_is_seen()

    def test_a_page_at_another_port(self):
        """Exactly three ports are open, for the LAN and the host itself, and for no host that comes in by an uplink."""
        self.serve_pages(ON_LINK, port=OTHER)
        self.shut()
        self.start()
        page = f"http://{ON_LINK}:{OTHER}/login"
        self.is_found(page)
        for namespace in (self.lab.client, self.edge):
            self.assertEqual(self.loads(page, namespace), "log-in by wifi")
            self.assertEqual(self.knock(ON_LINK, NOBODY[0], ON_LTE, PORTAL, namespace=namespace),
                             self.tcp((*OPEN, OTHER), ON_LINK, NOBODY[0]))
        self.lab.links.set("lte", down=False)
        self.hub.route(NOBODY[0], "via", "10.0.1.1", "dev", "lte0")
        self.addCleanup(self.hub.ip, "route", "del", NOBODY[0])
        own = self.tcp([80], NOBODY[0])  # what the daemon itself asks
        self.assertEqual(self.knock(NOBODY[0], namespace=self.hub) - own, set())
        self.no_host_of_the_lan_is_seen()

    def test_the_page_is_open_while_no_peer_is_up_alone(self):
        """Also a connection that began before ends with that."""
        self.serve_pages(ON_LINK)
        self.shut()
        self.start()
        self.is_found(self.page(ON_LINK))
        begun = self.lab.client.inside(socket.create_connection, (ON_LINK, 80), 2)
        self.addCleanup(begun.close)
        self.lab.links.set("lte", down=False)
        self.gateway.wait_up(timeout=60)
        self.eventually(lambda: "a peer is up" in self.status()["portal_open"], "it is shut")
        before = len(self.arrivals.seen)
        begun.send(b"GET /login HTTP/1.0\r\n\r\n")
        self.assertEqual(self.knock(ON_LINK, NOBODY[0]), self.tcp(OPEN, NOBODY[0]))
        self.assertEqual([seen for seen in self.arrivals.seen[before:] if seen[1] == ON_LINK], [])
        self.lab.links.set("lte", down=True)
        self.eventually(lambda: self.loads(self.page(ON_LINK)) == "log-in by wifi", "it is open again", 60)
        self.no_host_of_the_lan_is_seen()

    def test_while_another_uplink_works(self):
        """Nothing is opened but what nobody has, whatever the portal says."""
        self.lab.links.set("lte", down=False)
        self.gateway.config["portal-check"] = "any"
        self.serve_pages(ON_LINK)
        self.shut()
        self.start()
        self.gateway.wait_up()
        self.is_found(self.page(ON_LINK))
        self.assertEqual(self.loads(self.page(NOBODY[0])), "log-in by wifi")
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
        self.is_found(self.page(ON_LINK))
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
                self.is_found(self.page(ON_LINK))
                self.assertEqual(self.loads(self.page(ON_LINK)), "log-in by wifi")
                self.gateway.stop(number)
                self.is_shut(ON_LINK, NOBODY[0])
                self.no_host_of_the_lan_is_seen()


class TwoPortals(PortalCase):
    """Both uplinks are behind captive portals of their own, and at first no peer is up."""

    def setUp(self):
        super().setUp()
        self.by_lte = Arrivals(self.hub, "lte0")
        self.addCleanup(self.by_lte.close)
        self.serve_pages(ON_LINK)

    def begin(self, *pages_of_lte):
        for uplink in ("wifi", "lte"):
            self.shut(uplink=uplink)
        self.start()
        self.by_lte.seen.clear()
        self.is_found(self.page(ON_LINK))
        self.is_found(*pages_of_lte, uplink="lte")
        self.eventually(lambda: self.knock(NOBODY[0]), "a way is opened")

    def test_both_are_told_and_each_page_is_reached(self):
        self.serve_pages(ON_LTE, "lte")
        self.begin(self.page(ON_LTE))
        told = self.told()
        for page in (ON_LINK, ON_LTE):
            self.assertIn(f"a captive portal waits for a login at {self.page(page)}", told)
        self.assertIn(f"open http://{NOBODY[0]}/ or {self.page(ON_LINK)} at a host of the LAN", told)
        self.assertIn(f"Remedy: open {self.page(ON_LTE)} at a host of the LAN", told)
        self.assertEqual(self.announced(), {"wifi", "lte"})
        self.assertIn(f"not {NOBODY[0]}: it leads to the portal of wifi", self.status("lte")["portal_open"])
        for page, uplink in ((ON_LINK, "wifi"), (ON_LTE, "lte")):
            self.assertEqual(self.loads(self.page(page)), f"log-in by {uplink}")
        self.assertEqual(self.knock(ON_LINK, ON_LTE, NOBODY[0]), self.tcp(OPEN, ON_LINK, NOBODY[0]))
        own = self.tcp([80], NOBODY[0])  # what the daemon itself asks
        self.assertEqual({seen[1:] for seen in self.by_lte.seen if seen[1] in (ON_LINK, ON_LTE, NOBODY[0])} - own,
                         self.tcp(OPEN, ON_LTE))
        self.log_in("wifi")
        self.gateway.wait_up(timeout=60)
        self.eventually(lambda: f"{ON_LTE}: a peer is up" in self.status("lte")["portal_open"], "its page is shut")
        asked = self.lab.client.run("curl", "-s", "-o", "/dev/null", "-w", "%{redirect_url}", f"http://{NOBODY[0]}/")
        self.assertEqual(asked, self.page(ON_LTE))
        self.assertEqual(self.loads(self.page(ON_LTE)), "")
        self.no_host_of_the_lan_is_seen()

    def test_one_login_after_the_other(self):
        """The page of lte is what it answers for an address that nobody has, which leads to wifi before: that of either
        family, whichever was answered first."""
        self.serve_pages(ON_LTE, "lte", redirects=False)
        self.begin(f"http://{NOBODY[0]}/", f"http://[{NOBODY[1]}]/")
        shown = self.status("lte")["portal"]
        page = f"{shown}login"
        self.assertEqual(self.loads(page), "log-in by wifi")
        self.log_in("wifi")
        self.gateway.wait_up(timeout=60)
        self.eventually(lambda: self.status()["portal"] is None, "no portal of wifi any more")
        self.eventually(lambda: self.loads(page) == "log-in by lte", "the other one's page")
        self.assertEqual(self.status("lte")["portal"], shown)
        self.log_in("lte")
        self.eventually(lambda: self.status("lte")["portal"] is None, "no portal of lte any more", 90)
        self.is_shut(ON_LINK, ON_LTE, NOBODY[0])
        self.no_host_of_the_lan_is_seen()


if __name__ == "__main__":
    unittest.main()
