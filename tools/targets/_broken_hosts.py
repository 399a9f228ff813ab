"""Broken set-ups of issue 48 at the gateway's host: routes (1), guards (2) and interfaces (3)."""

import json

from lab.gateway import PORT, binary, merge
from lab.site import PUBLIC

from ._broken import Setups

SETUPS = Setups()
broken = SETUPS.broken
EVERYTHING = ["0.0.0.0/0", "::/0"]
LAN = ["192.168.10.0/24", "fd00:0:0:10::/64"]
BY_V6 = [f"[{PUBLIC[1]}]:{PORT}"]


def routes(p, *networks, **device):
    """The edge routes these networks into the tunnel."""
    merge(p.edge.config, {"device": {"routes": list(networks), **device}})
    p.edge.config["peers"][0]["prefixes"] = [*p.fresh(p.edge)["peers"][0]["prefixes"], *networks]


def everything(p, **device):
    routes(p, *EVERYTHING, **device)


def lan(p, *more):
    """The edge's LAN is known."""
    p.edge.config["device"]["networks"] = [*LAN, *more]


def by_ipv6(p):
    p.edge.config["peers"][0]["endpoints"] = BY_V6


def uplink(p, index, **settings):
    """Other settings of an uplink, until the end of the set-up. None takes one away."""
    merge(p.edge.config["uplinks"][index], settings)


def mac_of(space, device):
    return json.loads(space.ip("-j", "link", "show", device))[0]["address"]


# ---- kind 1: routes

def _name_the_router(p):
    uplink(p, 1, gateway="10.0.1.2")
    p.reconnect()


@broken("an uplink without a default route", r"lte: lte0 has no IPv4 default route",
        r"set uplinks\.gateway to the router's address", kind=1, program="iproute2", family="IPv4",
        mend=_name_the_router)
def _no_default(p):
    p.start(p.hub)
    p.unplug("ip -4 route del default dev lte0")
    return p.asked(p.edge)


@broken("a router in no network of the uplink", r"dsl: the router fd01:0:0:9::2 is in no network of dsl0",
        r"correct uplinks\.gateway", kind=1, program="braid.yaml", family="IPv6",
        mend=lambda p: uplink(p, 0, gateway="auto"))
def _foreign_router(p):
    p.start(p.hub)
    by_ipv6(p)
    uplink(p, 0, gateway="fd01:0:0:9::2")
    return p.asked(p.edge)


@broken("the endpoint lies in what is routed into the tunnel", r"holds the endpoint \[2001:db8::1\]:4433",
        r"use 'gateway: auto'", kind=1, program="braid.yaml", family="IPv6",
        mend=lambda p: uplink(p, 0, gateway="auto"))
def _loop(p):
    p.start(p.hub)
    by_ipv6(p)
    routes(p, "2001:db8::/32")
    uplink(p, 0, gateway="none")
    return p.asked(p.edge)


@broken("the same network at both sides", r"network of lan0, fd00:0:0:100::/64, holds fd00:0:0:100::/64",
        r"renumber one of the two LANs", kind=1, program="iproute2", family="IPv6",
        mend=lambda p: p.space.ip("address", "del", "fd00:0:0:100::9/64", "dev", "lan0"))
def _same_lan(p):
    p.start(p.hub)
    p.command(p.space, "ip address add fd00:0:0:100::9/64 dev lan0 nodad noprefixroute",
              "ip address del fd00:0:0:100::9/64 dev lan0")
    return p.asked(p.edge)


@broken("IPv6 leaves beside an IPv4 tunnel",
        r"take all of IPv4 and nothing of IPv6, which has a default route by dsl0", r'add "::/0" to device\.routes',
        kind=1, program="router advertisements (proto ra)", family="IPv6", mend=everything)
def _ipv6_in_clear(p):
    p.start(p.hub)
    routes(p, "0.0.0.0/0")
    p.command(p.space, "ip -6 route add default via fd01::2 dev dsl0 proto ra metric 1",
              "ip -6 route del default via fd01::2 dev dsl0 proto ra metric 1")
    return p.asked(p.edge)


@broken("IPv4 leaves beside an IPv6 tunnel",
        r"take all of IPv6 and nothing of IPv4, which has a default route by dsl0",
        r'add "0\.0\.0\.0/0" to device\.routes', kind=1, program="a lease (proto dhcp)", family="IPv4",
        mend=everything)
def _ipv4_in_clear(p):
    p.start(p.hub)
    routes(p, "::/0")
    p.command(p.space, "ip -4 route add default via 10.0.0.2 dev dsl0 proto dhcp metric 1",
              "ip -4 route del default via 10.0.0.2 dev dsl0 proto dhcp metric 1")
    return p.asked(p.edge)


@broken("the uplink's router is gone", r"lte: the router 10\.0\.1\.2 does not answer at lte0 \(ARP\)",
        r"see to the router and the line", kind=1, program="iproute2", family="IPv4",
        mend=lambda p: p.far.ip("link", "set", "lte0", "arp", "on"))
def _mute_router(p):
    p.start(p.hub)
    p.command(p.far, "ip link set lte0 arp off", "ip link set lte0 arp on")
    p.space.ip("neigh", "flush", "dev", "lte0")
    return p.asked(p.edge)


@broken("the uplink's router is gone, IPv6",
        r"lte: the router fd01:0:0:1::2 does not answer at lte0 \(neighbour discovery\)",
        r"see to the router and the line", kind=1, program="nftables", family="IPv6",
        mend=lambda p: p.far.run("nft", "flush", "ruleset"))
def _mute_router6(p):
    p.start(p.hub)
    by_ipv6(p)
    p.nft(p.far, "table ip6 t { chain i { type filter hook input priority 0; "
                 "iifname lte0 icmpv6 type nd-neighbor-solicit drop; } }")
    p.space.ip("neigh", "flush", "dev", "lte0")
    return p.asked(p.edge)


# ---- kind 2: guards

def _release(p, path):
    p.space.run(binary("braidctl"), "release", path)


def guarded(p):
    """The edge takes everything and guards it, until the reset."""
    everything(p, **{"when-down": "block"})
    p.edge.write_config()
    p.undo(_release, p, p.edge.path)


@broken("block, and no guard before the first start", r"when-down is block, and its guard is not there",
        r"(?P<run>braidctl guard apply \S+)", kind=2, program="braidctl", family="both")
def _no_guard(p):
    p.start(p.hub)
    guarded(p)
    return p.asked(p.edge)


@broken("another program took the guard's packet filter away", r"its guard is not there, or not whole",
        r"(?P<run>braidctl guard apply \S+)", kind=2, program="nftables", family="both")
def _half_guard(p):
    guarded(p)
    p.start(p.hub, p.edge)
    p.edge.stop()
    p.space.run("nft", "flush", "ruleset")
    return p.asked(p.edge)


@broken("another program took the guard's rules away", r"its guard is not there, or not whole",
        r"(?P<run>braidctl guard apply \S+)", kind=2, program="iproute2", family="IPv6")
def _no_rules(p):
    guarded(p)
    p.start(p.hub, p.edge)
    p.edge.stop()
    p.space.ip("-6", "rule", "del", "priority", "6700")
    return p.asked(p.edge)


@broken("the guard of a gateway that is not used any more", r"the guard of \S+old\.yaml \(braid9\) refuses packets",
        r"(?P<run>braidctl release \S+old\.yaml)", kind=2, program="braidctl", family="both")
def _old_guard(p):
    p.start(p.hub)
    old = p.lab.directory / "old.yaml"
    everything(p, **{"when-down": "block", "name": "braid9"})
    old.write_text(json.dumps(p.edge.config), encoding="utf-8")
    p.edge.config = p.fresh(p.edge)
    p.space.run(binary("braidctl"), "guard", "apply", old)
    p.undo(_release, p, old)
    return p.asked(p.edge)


SYSTEMCTL = """#!/bin/sh -e
wants=/etc/systemd/system/multi-user.target.wants
mkdir -p $wants
[ $1 = enable ] && ln -s /lib/systemd/system/${2%%@*}@.service $wants/$2.service
"""


@broken("block, and nothing that makes the guard at boot", r"neither braid@edge nor braid-guard@edge is enabled",
        r"(?P<run>systemctl enable braid@edge)", kind=2, program="systemd, as recorded", family="both")
def _not_enabled(p):
    p.start(p.hub)
    guarded(p)
    programs = p.lab.directory / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "systemctl").write_text(SYSTEMCTL, encoding="ascii")
    (programs / "systemctl").chmod(0o755)
    prepare = (f"{p.etc()}; mount -t tmpfs none /run; mkdir -p /run/systemd/system /etc/braid; "
               f"mount --bind {p.lab.directory} /etc/braid; export PATH={programs}:$PATH")
    p.space.run(binary("braidctl"), "guard", "apply", p.edge.path)
    return p.shell(p.edge, prepare, file="/etc/braid/edge.yaml")


def _direct(p, family):
    p.start(p.hub)
    everything(p, **{"when-down": "direct"})
    for device in ("dsl0", "lte0"):
        p.unplug(f"ip {family} route del default dev {device}")
    return p.asked(p.edge)


@broken("direct, and no way of the host's own for IPv6",
        r"when-down is direct, and this host has no default route of IPv6", r"ip -6 route add default", kind=2,
        program="iproute2", family="IPv6", mend=lambda p: p.plug())
def _direct6(p):
    for number, device in enumerate(("dsl0", "lte0")):  # without public ones a host has no IPv6 that could be missed
        p.command(p.space, f"ip address add 2001:db8:6{number}::1/64 dev {device} nodad",
                  f"ip address del 2001:db8:6{number}::1/64 dev {device}")
    return _direct(p, "-6")


@broken("direct, and no way of the host's own for IPv4",
        r"when-down is direct, and this host has no default route of IPv4", r"ip -4 route add default", kind=2,
        program="iproute2", family="IPv4", mend=lambda p: p.plug())
def _direct4(p):
    by_ipv6(p)
    return _direct(p, "-4")


# ---- kind 3: interfaces

@broken("an interface that another name has by now", r"lte: there is no interface wwan0",
        r"correct uplinks\.interface", kind=3, program="iproute2", family="both",
        mend=lambda p: uplink(p, 1, interface="lte0"))
def _renamed(p):
    p.start(p.hub)
    uplink(p, 1, interface="wwan0")
    return p.asked(p.edge)


@broken("a MAC address that no interface has", r"lte: there is no interface with MAC 02:00:5e:00:53:09",
        r"correct uplinks\.mac", kind=3, program="iproute2", family="both",
        mend=lambda p: uplink(p, 1, mac=mac_of(p.space, "lte0")))
def _no_mac(p):
    p.start(p.hub)
    uplink(p, 1, interface=None, mac="02:00:5e:00:53:09")
    return p.asked(p.edge)


@broken("a MAC address that two interfaces have", r"lte: more than one interface with MAC \S+ \(",
        r"name it by uplinks\.path.*or by interface", kind=3, program="iproute2", family="both",
        mend=lambda p: uplink(p, 1, mac=None, interface="lte0"))
def _two_macs(p):
    p.start(p.hub)
    own, other = mac_of(p.space, "lan0"), mac_of(p.space, "lte0")
    p.command(p.space, f"ip link set lan0 address {other}", f"ip link set lan0 address {own}")
    uplink(p, 1, interface=None, mac=other)
    return p.asked(p.edge)


@broken("two uplinks that are one interface", r"dsl and modem are one interface, dsl0",
        r"correct interface, mac or path", kind=3, program="braid.yaml", family="both",
        mend=lambda p: uplink(p, 1, name="lte", interface="lte0", mac=None))
def _one_interface(p):
    p.start(p.hub)
    uplink(p, 1, name="modem", interface=None, mac=mac_of(p.space, "dsl0"))
    return p.asked(p.edge)


@broken("an uplink that is switched off", r"lte: the link lte0 is down", r"(?P<run>ip link set lte0 up)", kind=3,
        program="iproute2", family="both", mend=lambda p: p.plug())
def _off(p):
    p.start(p.hub)
    p.unplug("ip link set lte0 down")
    return p.asked(p.edge)


def _carrier(p):
    p.far.ip("link", "set", "lte0", "up")
    p.plug()


@broken("an uplink without carrier", r"lte: the link lte0 is down", r"cable, modem or radio: it has no carrier",
        kind=3, program="veth", family="both", mend=_carrier)
def _no_carrier(p):
    p.start(p.hub)
    p.far.ip("link", "set", "lte0", "down")
    p.undo(_carrier, p)
    return p.asked(p.edge)


@broken("a source address that the provider took back", r"dsl: dsl0 does not have the configured source address",
        r"correct uplinks\.source", kind=3, program="router advertisements", family="IPv6",
        mend=lambda p: uplink(p, 0, source=None))
def _no_source(p):
    p.start(p.hub)
    by_ipv6(p)
    uplink(p, 0, source="fd01::77")
    return p.asked(p.edge)


def _another_address(p):
    p.space.ip("address", "flush", "dev", "lte0", "scope", "global")
    p.plug()


@broken("an address that another host has",
        r"lte0 has no usable address: fd01:0:0:1::2 is not for use, as another host",
        r"DHCP client.*or give it an address", kind=3, program="duplicate address detection", family="IPv6",
        mend=_another_address)
def _duplicate(p):
    p.start(p.hub)
    by_ipv6(p)
    p.sysctl(p.space, net__ipv6__conf__lte0__accept_dad=1, net__ipv6__conf__lte0__dad_transmits=1)
    p.unplug("ip address flush dev lte0 scope global")
    p.undo(p.space.ip, "address", "flush", "dev", "lte0", "scope", "global")
    p.space.ip("address", "add", "fd01:0:0:1::2/64", "dev", "lte0")
    p.lab.wait_for(lambda: "dadfailed" in p.space.ip("address", "show", "dev", "lte0"), "the other host's answer")
    return p.asked(p.edge)


@broken("an uplink with a small MTU", r"dsl: dsl0 has an MTU of 1200", r"(?P<run>ip link set dsl0 mtu 1500)", kind=3,
        program="iproute2", family="both", mend=lambda p: p.plug())
def _small(p):
    p.start(p.hub)
    p.unplug("ip link set dsl0 mtu 1200")
    p.undo(p.space.ip, "link", "set", "dsl0", "mtu", "1500")
    return p.asked(p.edge)


@broken("the LAN's interface is switched off",
        r"lan0, which leads to 192\.168\.10\.0/24 \(device\.networks\), is switched off",
        r"(?P<run>ip link set lan0 up)", kind=3, program="iproute2", family="both")
def _lan_off(p):
    p.start(p.hub)
    lan(p)
    p.command(p.space, "ip link set lan0 down", "ip link set lan0 up")
    return p.asked(p.edge)


def _plug_client(p):
    p.lab.client.ip("link", "set", "lan0", "up")
    p.lab.client.route("0.0.0.0/0", "via", "192.168.10.1")
    p.lab.client.route("::/0", "via", "fd00:0:0:10::1")


@broken("a LAN port without carrier", r"lan0, which leads to .*has no carrier",
        r"see to the cable, the switch or the access point", kind=3, program="veth", family="both", mend=_plug_client)
def _lan_unplugged(p):
    p.start(p.hub)
    lan(p)
    p.lab.client.ip("link", "set", "lan0", "down")
    p.undo(_plug_client, p)
    return p.asked(p.edge)


@broken("a LAN that no interface leads to", r"192\.168\.77\.0/24 \(device\.networks\) is at no interface",
        r"ip address add ADDRESS/24 dev INTERFACE", kind=3, program="iproute2", family="IPv4",
        mend=lambda p: p.command(p.space, "ip address add 192.168.77.1/24 dev lan0",
                                 "ip address del 192.168.77.1/24 dev lan0"))
def _nowhere(p):
    p.start(p.hub)
    lan(p, "192.168.77.0/24")
    return p.asked(p.edge)


@broken("the LAN's port became a port of a bridge and kept its address",
        r"lan0 has the address 192\.168\.10\.1/24 and is a port of the bridge br-lan",
        r"(?P<run>ip address del \S+ dev lan0 && ip address add \S+ dev br-lan)", kind=3, program="bridge",
        family="both")
def _bridge_port(p):
    p.start(p.hub)
    lan(p)
    p.undo(p.space.address, "lan0", "192.168.10.1/24", "fd00:0:0:10::1/64")
    p.command(p.space, "ip link add br-lan type bridge", "ip link del br-lan")
    p.space.ip("link", "set", "br-lan", "up")
    p.space.ip("link", "set", "lan0", "master", "br-lan")
    return p.asked(p.edge)
