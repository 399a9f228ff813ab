"""The kinds of host on which `braidctl join` is tried: each is a lab of its own, whose edge is made so before it
joins."""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import struct
from typing import Callable

from lab.bare import Machine
from lab.gateway import PORT
from lab.lab import Lab, tune
from lab.links import Wire
from lab.netns import join
from lab.services import Nginx
from lab.site import PUBLIC, SERVER_LAN, server_addresses

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000  # linux/if_tun.h
FAMILIES = ("-4", "-6")
EVERYTHING = ("0.0.0.0/0", "::/0")
LAN = ("192.168.10.0/24", "fd00:0:0:10::/64")
V4, V6 = server_addresses()
GATEWAY = ("192.168.10.1/24", "fd00:0:0:10::1/64")  # the edge's addresses in its LAN
RULESETS = pathlib.Path(__file__).resolve().parents[2] / "tests/e2e/firewalls"
# As the units do it: the guard is made, and then the gateway starts.
GUARD = "braidctl guard apply /etc/braid/$name.yaml >>{directory}/logs/{machine}.log 2>&1"
CUT = (f"nft 'table inet cut {{ chain leaving {{ type filter hook output priority 0; udp dport {PORT} drop; }}; }}'",
       "nft delete table inet cut")
DROP = """table inet filter {
  chain input { type filter hook input priority 0; policy drop;
    iif lo accept
    ct state established,related accept
    meta l4proto ipv6-icmp accept
    tcp dport 22 accept
  }
  chain forward { type filter hook forward priority 0; policy drop;
    ct state established,related accept
  }
}
"""


@dataclasses.dataclass
class Kind:
    """A kind of host. `make` changes a Home; what it returns is called after the join, before the page is loaded."""

    name: str
    make: Callable
    lans: tuple = LAN  # the networks that join may take, and no others
    pages: tuple = (V4, V6)  # the servers from which a host of the LAN loads a page
    routed: tuple = SERVER_LAN  # networks of the invitation
    words: tuple = ()  # further words of the user's join
    endpoint: str = f"{PUBLIC[0]}:{PORT}"


KINDS = []


def kind(name, **more):
    def register(function):
        KINDS.append(Kind(name, function, **more))
        return function

    return register


class Home:
    """A concentrator with a server behind it, and an edge with a LAN, both without a gateway."""

    def __init__(self, routed):
        self.lab = Lab([Wire("wifi"), Wire("lte")])
        self._routed = routed
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self._stack.enter_context(self.lab)
        self.page = Nginx(self.lab).add("page", 20_000)
        self.edge, self.client = self.lab.edge, self.lab.client
        self.hub = Machine(self.lab, "hub", self.lab.concentrator)
        self.machine = Machine(self.lab, "edge", self.lab.edge)
        for machine in (self.hub, self.machine):
            self._stack.callback(machine.stop)
        self.hub.ctl("setup", "--yes", *_networks(SERVER_LAN))
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)

    def invite(self, endpoint):
        return self.hub.ctl("invite", "van", "--address", endpoint, *_networks(self._routed)).strip() + "\n"

    def call(self, *words):
        """A command at the edge, which must succeed."""
        done = self.machine.call(*words)
        if done.returncode != 0:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def namespace(self, role):
        space = self.lab.namespace(role)
        tune(space)
        return space

    def unplug(self, device):
        """The edge has that interface no more."""
        self.edge.ip("link", "del", device)

    def tun(self, name, *addresses):
        """A device like that of a VPN, kept open so that it has a carrier."""
        device = self.edge.inside(os.open, "/dev/net/tun", os.O_RDWR)
        self._stack.callback(os.close, device)
        self.edge.inside(fcntl.ioctl, device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        self.edge.address(name, *addresses)

    def switch(self, far, port):
        """The LAN is reached by a switch in that namespace. `port` is the edge's interface there; it has no address
        yet."""
        self.unplug("lan0")
        far.run("sysctl", "-qe", *(f"net.bridge.bridge-nf-call-{what}=0" for what in ("iptables", "ip6tables")))
        far.ip("link", "add", "switch", "type", "bridge")
        for near, device, end in ((self.edge, port, "edge-port"), (self.client, "lan0", "client-port")):
            join(near, device, far, end)
            far.ip("link", "set", end, "master", "switch", "up")
            near.ip("link", "set", device, "up")
        far.ip("link", "set", "switch", "up")
        self.plug_client()

    def provide(self, router, network="198.51.100", port="provider"):
        """That namespace reaches the concentrator by IPv4, with its own address (NAT). `port`: the concentrator's
        interface there."""
        join(router, "uplink", self.lab.concentrator, port)
        router.address("uplink", f"{network}.2/24")
        router.route("0.0.0.0/0", "via", f"{network}.1")
        self.lab.concentrator.address(port, f"{network}.1/24")
        router.run("nft", "table ip nat { chain out { type nat hook postrouting priority 100; "
                          "oifname uplink masquerade; }; }")

    def plug_client(self):
        """The client's addresses and routes, after its interface was down."""
        self.client.address("lan0", "192.168.10.2/24", "fd00:0:0:10::2/64")
        for network, via in zip(EVERYTHING, ("192.168.10.1", "fd00:0:0:10::1")):
            self.client.route(network, "via", via)

    def loads(self, server):
        """Whether a host of the LAN loads the page from that server."""
        url = f"http://[{server}]{self.page}" if ":" in server else f"http://{server}{self.page}"
        got = self.client.run("curl", "-sgf", "--retry", "2", "--retry-connrefused", "--max-time", "8",
                              "-o", "/dev/null", "-w", "%{size_download}", url, check=False)
        return got == "20000"


def _networks(networks):
    return [word for network in networks for word in ("--network", network)]


# ---- the kinds

@kind("two uplinks, routes with metrics")
def _two_uplinks(_home):
    """As the lab makes it."""


@kind("one uplink, a default route without a metric", routed=EVERYTHING)
def _no_metric(home):
    """As ifupdown and dhclient leave it."""
    home.unplug("lte0")
    for family, via, metric in zip(FAMILIES, ("10.0.0.2", "fd01::2"), ((), ("metric", 1))):
        home.edge.ip(family, "route", "flush", "default")
        home.edge.ip(family, "route", "add", "default", "via", via, "dev", "wifi0", *metric)


@kind("behind the provider's NAT, IPv4 only", routed=EVERYTHING)
def _cgnat(home):
    home.unplug("wifi0")
    home.unplug("lte0")
    provider = home.namespace("provider")
    join(home.edge, "eth0", provider, "customer")
    home.edge.address("eth0", "100.64.0.2/24")
    home.edge.route("0.0.0.0/0", "via", "100.64.0.1")
    provider.address("customer", "100.64.0.1/24")
    home.provide(provider)


@kind("two modems in one subnet, with one address", pages=(V4,), routed=EVERYTHING)
def _equal_modems(home):
    """As USB modems of one make come up: each is a router of its own, with the same network."""
    home.unplug("wifi0")
    home.unplug("lte0")
    for number, network in enumerate(("198.51.100", "198.18.0")):
        modem = home.namespace(f"modem{number}")
        join(home.edge, f"wwan{number}", modem, "customer")
        home.edge.address(f"wwan{number}", "192.168.8.100/24")
        home.edge.route("0.0.0.0/0", "via", "192.168.8.1", "dev", f"wwan{number}", "metric", str(100 + number))
        modem.address("customer", "192.168.8.1/24")
        home.provide(modem, network, f"provider{number}")


@kind("IPv6 only, no IPv4 at the uplinks", routed=EVERYTHING, endpoint=f"[{PUBLIC[1]}]:{PORT}")
def _ipv6_only(home):
    home.unplug("lte0")
    home.edge.ip("-4", "address", "flush", "dev", "wifi0")


@kind("IPv6 switched off", pages=(V4,), lans=LAN[:1], routed=EVERYTHING)
def _no_ipv6(home):
    home.edge.sysctl(net__ipv6__conf__all__disable_ipv6=1)


@kind("a bridge br-lan with ports")
def _bridge(home):
    # In the same place as the uplinks' other ends: in a namespace, other veth pairs are those of containers.
    home.switch(home.lab.concentrator, "lan1")
    home.edge.ip("link", "add", "br-lan", "type", "bridge")
    home.edge.ip("link", "set", "lan1", "master", "br-lan")
    home.edge.address("br-lan", *GATEWAY)
    home.lab.wait_for(lambda: " state UP " in home.edge.ip("link", "show", "br-lan"), "br-lan")


@kind("a LAN port without carrier")
def _no_carrier(home):
    home.client.ip("link", "set", "lan0", "down")
    home.lab.wait_for(lambda: "NO-CARRIER" in home.edge.ip("link", "show", "lan0"), "no carrier")
    return lambda: (home.client.ip("link", "set", "lan0", "up"), home.plug_client())


@kind("one interface, in a LAN with another router", words=("--network", LAN[0], "--network", LAN[1]),
      routed=EVERYTHING)
def _one_armed(home):
    home.unplug("wifi0")
    home.unplug("lte0")
    router = home.namespace("router")
    home.switch(router, "eth0")
    home.edge.address("eth0", *GATEWAY)
    home.edge.route("0.0.0.0/0", "via", "192.168.10.254")
    router.address("switch", "192.168.10.254/24")
    home.provide(router)


@kind("bridges of containers")
def _containers(home):
    for number, bridge in enumerate(("docker0", "podman0", "incusbr0")):
        home.edge.ip("link", "add", bridge, "type", "bridge")
        home.edge.address(bridge, f"172.{17 + number}.0.1/16")
        pod = home.namespace(f"pod{number}")
        join(home.edge, f"veth{number}", pod, "eth0")
        home.edge.ip("link", "set", f"veth{number}", "master", bridge, "up")
        pod.address("eth0", f"172.{17 + number}.0.2/16")
        pod.route("0.0.0.0/0", "via", f"172.{17 + number}.0.1")
        home.lab.wait_for(lambda name=bridge: " state UP " in home.edge.ip("link", "show", name), bridge)


@kind("other tunnels", routed=EVERYTHING)
def _tunnels(home):
    home.tun("wg0", "10.200.0.2/24")
    home.tun("tailscale0", "100.101.102.103/32", "fd7a:115c:a1e0::1/128")
    home.edge.route("10.77.0.0/16", "dev", "wg0")
    home.edge.route("100.100.100.100/32", "dev", "tailscale0")


@kind("forwarding off")
def _no_forwarding(home):
    home.edge.sysctl(net__ipv4__ip_forward=0, net__ipv6__conf__all__forwarding=0)


@kind("strict reverse path filter")
def _strict(home):
    home.edge.sysctl(net__ipv4__conf__all__rp_filter=1, net__ipv4__conf__default__rp_filter=1)


@kind("ufw with its defaults")
def _ufw(home):
    home.call("ufw", "--force", "enable")
    home.call("ufw", "reload")  # rules for IPv6 are complete from the first reload on


@kind("Docker's FORWARD policy")
def _docker(home):
    home.call("iptables-nft-restore", RULESETS / "docker-20.10.24.v4")


@kind("nftables that drop what nobody named")
def _drop(home):
    rules = home.lab.directory / "rules"
    rules.write_text(DROP, encoding="ascii")
    home.call("nft", "-f", rules)
