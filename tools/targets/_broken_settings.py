"""Broken set-ups of issue 48: settings of the kernel (8)."""

import time

from ._broken import Setups
from ._broken_hosts import by_ipv6, lan

SETUPS = Setups()
broken = SETUPS.broken


@broken("forwarding is off", r"net\.ipv4\.ip_forward is off, and 192\.168\.10\.0/24 is behind this gateway",
        r"(?P<run>sysctl -w net\.ipv4\.ip_forward=1)", kind=8, program="sysctl", family="IPv4")
def _no_forwarding(p):
    p.start(p.hub)
    lan(p)
    p.sysctl(p.space, net__ipv4__ip_forward=0)
    return p.asked(p.edge)


@broken("forwarding of IPv6 is off", r"net\.ipv6\.conf\.all\.forwarding is off, and fd00:0:0:10::/64 is behind",
        r"(?P<run>sysctl -w net\.ipv6\.conf\.all\.forwarding=1)", kind=8, program="sysctl", family="IPv6")
def _no_forwarding6(p):
    p.start(p.hub)
    lan(p)
    p.sysctl(p.space, net__ipv6__conf__all__forwarding=0)
    return p.asked(p.edge)


@broken("forwarding is off at the LAN's interface",
        r"net\.ipv4\.conf\.lan0\.forwarding is off, while net\.ipv4\.ip_forward is on",
        r"(?P<run>sysctl -w net\.ipv4\.conf\.lan0\.forwarding=1)", kind=8, program="NetworkManager's kind of setting",
        family="IPv4")
def _no_forwarding_of_lan(p):
    p.start(p.hub)
    lan(p)
    p.sysctl(p.space, net__ipv4__conf__lan0__forwarding=0)
    return p.asked(p.edge)


@broken("nat without forwarding", r"net\.ipv6\.conf\.all\.forwarding is off, and .*\(nat\)",
        r"'forwarding: on' in the configuration", kind=8, program="sysctl", family="IPv6",
        mend=lambda p: p.hub.config.update(forwarding="on"))
def _nat(p):
    p.hub.config["nat"] = "on"
    p.sysctl(p.far, net__ipv6__conf__all__forwarding=0)
    return p.asked(p.hub)


@broken("strict reverse path filter on one uplink", r"strict reverse path filter on uplink lte .*lte0\.rp_filter",
        r"(?P<run>sysctl -w net\.ipv4\.conf\.lte0\.rp_filter=2)", kind=8, program="sysctl", family="IPv4")
def _strict(p):
    p.start(p.hub)
    p.sysctl(p.space, net__ipv4__conf__lte0__rp_filter=1)
    return p.asked(p.edge)


@broken("strict reverse path filter of the whole host", r"strict reverse path filter .*conf\.all\.rp_filter",
        r"(?P<run>sysctl -w net\.ipv4\.conf\.all\.rp_filter=2)", kind=8, program="sysctl", family="IPv4")
def _strict_all(p):
    p.start(p.hub)
    p.sysctl(p.space, net__ipv4__conf__all__rp_filter=1)
    return p.asked(p.edge)


RADVD = """interface lte0 {
  AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; AdvDefaultLifetime 1800;
  prefix 2001:db8:51::/64 { AdvOnLink on; AdvAutonomous on; };
};
"""


@broken("a host that forwards hears no router advertisements",
        r"lte0 forwards, and so hears no router advertisements",
        r"(?P<run>sysctl -w net\.ipv6\.conf\.lte0\.accept_ra=2)", kind=8, program="radvd", family="IPv6")
def _no_advertisements(p):
    p.start(p.hub)
    by_ipv6(p)
    p.command(p.far, "ip address add 2001:db8:51::1/64 dev lte0 nodad", "ip address del 2001:db8:51::1/64 dev lte0")
    config = p.lab.directory / "radvd.conf"
    config.write_text(RADVD, encoding="ascii")
    config.chmod(0o600)
    program = p.lab.start(p.far, "radvd", ["radvd", "-n", "-C", config, "-p", p.lab.directory / "radvd.pid",
                                           "-m", "stderr"])
    p.undo(p.lab.stop, program)
    p.sysctl(p.space, net__ipv6__conf__lte0__accept_ra=1)
    p.unplug("ip -6 address flush dev lte0 scope global")
    p.undo(p.space.run, "ip", "-6", "route", "flush", "dev", "lte0", "proto", "ra", check=False)
    p.space.run("ip", "-6", "route", "del", "default", "dev", "lte0", check=False)
    time.sleep(5)  # some advertisements
    return p.asked(p.edge)


@broken("IPv6 is switched off at an uplink", r"uplink lte has no IPv6: net\.ipv6\.conf\.lte0\.disable_ipv6 is 1",
        r"(?P<run>sysctl -w net\.ipv6\.conf\.lte0\.disable_ipv6=0)", kind=8, program="sysctl", family="IPv6",
        mend=lambda p: p.plug())
def _no_ipv6(p):
    p.start(p.hub)
    by_ipv6(p)
    p.undo(p.plug)
    p.sysctl(p.space, net__ipv6__conf__lte0__disable_ipv6=1)
    return p.asked(p.edge)


@broken("IPv6 is switched off for what comes later",
        r"net\.ipv6\.conf\.default\.disable_ipv6 is 1, and device\.addresses has",
        r"(?P<run>sysctl -w net\.ipv6\.conf\.default\.disable_ipv6=0)", kind=8, program="sysctl", family="IPv6")
def _no_ipv6_later(p):
    p.start(p.hub)
    p.sysctl(p.space, net__ipv6__conf__default__disable_ipv6=1)
    return p.asked(p.edge)


@broken("the table of connections is full", r"the kernel follows 65000 connections of at most 65536",
        r"(?P<run>sysctl -w net\.netfilter\.nf_conntrack_max=\d+)", kind=8, program="conntrack", family="both")
def _conntrack(p):
    # The limit is that of the whole machine, which others use. So only doctor sees these values here.
    p.start(p.hub)
    prepare = []
    for name, value in (("count", 65000), ("max", 65536)):
        file = p.lab.directory / f"conntrack_{name}"
        file.write_text(f"{value}\n", encoding="ascii")
        prepare.append(f"mount --bind {file} /proc/sys/net/netfilter/nf_conntrack_{name}")
    return p.shell(p.edge, "; ".join(prepare))


@broken("small socket buffers in a container of a user", r"net\.core\.wmem_max allows",
        r"sysctl -w net\.core\.wmem_max", kind=8, program="a user's container", family="both")
def _buffers(p):
    p.start(p.hub)
    limit = p.lab.directory / "wmem_max"
    limit.write_text("212992\n", encoding="ascii")
    return p.shell(p.edge, f"mount --bind {limit} /proc/sys/net/core/wmem_max", ["--user", "--map-root-user"])
