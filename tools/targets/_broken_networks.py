"""Broken set-ups of issue 48 around the gateways: firewalls (4), what is taken over (5), peers (6), names (7)."""

import pathlib
import socket
import time

from lab.gateway import PORT, binary
from lab.services import HTTP_PORT, Dnsmasq
from lab.site import PUBLIC, server_addresses

from ._broken import SETTLED, Setups
from ._broken_hosts import LAN, by_ipv6, everything, lan

SETUPS = Setups()
broken = SETUPS.broken
RULESETS = pathlib.Path(__file__).resolve().parents[2] / "tests/e2e/firewalls"
V4, V6 = server_addresses()
INTO_CHAINS = r"(?P<run>braidctl firewall allow \S+ --into-chains)"
ALLOW = r"(?P<run>braidctl firewall allow \S+) \(has "


# ---- kind 4: firewalls

def _flush(p, space):
    p.undo(space.run, "nft", "flush", "ruleset")


def _behind(p, rules, space=None):
    """The hub runs, the edge knows its LAN, and these nftables are in the way."""
    p.start(p.hub)
    lan(p)
    p.nft(space or p.space, rules)
    return p.asked(p.edge)


DROP = ("table {0} filter {{ chain forward {{ type filter hook forward priority 0; policy drop; "
        "ct state established accept; }} }}")


@broken("a drop policy of forward",
        r"IPv4 packets from lan0 \(192\.168\.10\.0/24\) to braid0 are dropped by chain forward of table inet "
        r"filter, by its policy", INTO_CHAINS, kind=4, program="nftables", family="both")
def _drop(p):
    return _behind(p, DROP.format("inet"))


@broken("a drop policy of forward, IPv6 alone",
        r"IPv6 packets from lan0 \(fd00:0:0:10::/64\) to braid0 are dropped by chain forward of table ip6 filter, "
        r"by its policy", INTO_CHAINS, kind=4, program="nftables", family="IPv6")
def _drop6(p):
    return _behind(p, DROP.format("ip6"))


@broken("a chain behind a verdict map rejects",
        r"IPv4 packets from lan0 .*dropped by chain pass of table inet fw, by a rule of chain zones", INTO_CHAINS,
        kind=4, program="nftables", family="both")
def _reject(p):
    return _behind(p, "table inet fw { chain lan { oifname dsl0 tcp dport 443 accept; } "
                      "chain zones { iifname vmap { lan0 : jump lan }; reject with icmpx admin-prohibited; } "
                      "chain pass { type filter hook forward priority 0; jump zones; } }")


def _restore(p, program, file):
    _flush(p, p.space)
    p.space.run(f"{program}-nft-restore", RULESETS / file)


@broken("the FORWARD chain of iptables drops by its policy",
        r"IPv4 packets from lan0 .*dropped by chain FORWARD of table ip filter, by its policy", INTO_CHAINS, kind=4,
        program="iptables-nft", family="IPv4")
def _iptables(p):
    p.start(p.hub)
    lan(p)
    _flush(p, p.space)
    p.space.run("iptables-nft", "-P", "FORWARD", "DROP")
    return p.asked(p.edge)


@broken("Docker's FORWARD policy",
        r"IPv4 packets from lan0 .*dropped by chain FORWARD of table ip filter, by its policy", ALLOW + "docker",
        kind=4, program="docker.io 20.10.24, as recorded", family="IPv4")
def _docker(p):
    p.start(p.hub)
    lan(p)
    _restore(p, "iptables", "docker-20.10.24.v4")
    return p.asked(p.edge)


@broken("ufw with its defaults", r"IPv6 packets from lan0 \(fd00:0:0:10::/64\) to braid0 are dropped by chain",
        ALLOW + "ufw", kind=4, program="ufw 0.36.2", family="both")
def _ufw(p):
    p.start(p.hub)
    lan(p)
    etc = p.etc()
    _flush(p, p.space)
    for words in ("--force enable", "reload"):
        p.space.run("unshare", "--mount", "sh", "-ec", f"{etc}; ufw {words}")
    return p.shell(p.edge, etc)


@broken("firewalld's zone of the LAN",
        r"IPv4 packets from lan0 .*dropped by chain filter_FORWARD of table inet firewalld",
        r"braidctl firewall allow \S+ \(has firewalld", kind=4, program="firewalld 1.3.3, as recorded", family="both")
def _firewalld(p):
    p.start(p.hub)
    lan(p)
    _flush(p, p.space)
    p.space.run("nft", "-f", RULESETS / "firewalld-1.3.3.nft")
    return p.asked(p.edge)


@broken("libvirt's network lets nobody in",
        r"new IPv4 connections from braid0 to lan0 .*by a rule of chain LIBVIRT_FWI", ALLOW + "libvirt", kind=4,
        program="libvirt 9.0.0, as recorded", family="IPv4")
def _libvirt(p):
    p.start(p.hub)
    lan(p)
    rules = p.lab.directory / "libvirt"
    rules.write_text((RULESETS / "libvirt-9.0.0.v4").read_text(encoding="ascii").replace("virbr0", "lan0")
                     .replace("192.168.122.0/24", LAN[0]), encoding="ascii")
    _restore(p, "iptables", rules)
    return p.shell(p.edge, p.etc())


@broken("connections that are taken over die at input",
        r"TCP connections of lan0 \(192\.168\.10\.0/24\) that are taken over for streams are dropped by chain input "
        r"of table inet filter", INTO_CHAINS, kind=4, program="nftables", family="both")
def _input(p):
    p.edge.config["streams"] = p.hub.config["streams"] = {"enabled": "on"}
    return _behind(p, "table inet filter { chain input { type filter hook input priority 0; policy drop; "
                      "iif lo accept; "
                      f"meta l4proto ipv6-icmp accept; udp sport {PORT} accept; tcp dport 22 accept; }} }}")


@broken("the gateway's port is dropped",
        rf"UDP port {PORT} .*dropped by chain input of table ip6 filter, by its policy",
        rf"(?P<run>nft insert rule ip6 filter input udp dport {PORT} accept)", kind=4, program="nftables",
        family="IPv6")
def _port(p):
    p.nft(p.far, "table ip6 filter { chain input { type filter hook input priority 0; policy drop; iif lo accept; "
                 "ip6 nexthdr ipv6-icmp accept; } }")
    return p.asked(p.hub)


def _way_out(p):
    """The hub reaches others by its first link."""
    p.command(p.far, "ip -4 route add default via 10.0.0.1 dev dsl0", "ip -4 route del default via 10.0.0.1 dev dsl0")


@broken("nat, and a drop policy of forward",
        r"IPv4 packets from braid0 to dsl0 are dropped by chain forward of table ip filter", INTO_CHAINS, kind=4,
        program="nftables", family="IPv4")
def _nat(p):
    _way_out(p)
    p.hub.config["nat"] = "ipv4"
    p.nft(p.far, DROP.format("ip"))
    return p.asked(p.hub)


@broken("a forwarded port, and a drop policy of forward",
        r"connections to port 8080 of 192\.168\.10\.2 \(forwards\) that come in by dsl0 are dropped by chain "
        r"forward of table ip filter", INTO_CHAINS, kind=4, program="nftables", family="IPv4")
def _forwards(p):
    _way_out(p)
    p.hub.config["forwards"] = [{"port": 8080, "to": "192.168.10.2"}]
    p.nft(p.far, DROP.format("ip"))
    return p.asked(p.hub)


@broken("a firewall at the edge's output", r"(cannot send to|refuses to send)", r"'output'", kind=4,
        program="nftables", family="IPv6", mend=lambda p: p.space.run("nft", "flush", "ruleset"))
def _output(p):
    p.start(p.hub)
    by_ipv6(p)
    p.nft(p.space, f"table ip6 t {{ chain o {{ type filter hook output priority 0; udp dport {PORT} drop; }} }}")
    return p.asked(p.edge)


# ---- kind 5: what is taken over

FORBIDDEN = r"connections were refused as streams \(ended_forbidden\)"


def streams(p, **hub):
    """Both gateways carry streams; `hub`: its settings of them."""
    lan(p)
    p.edge.config["streams"] = {"enabled": "on"}
    p.hub.config["streams"] = {"enabled": "on", **hub}


def knock(p, *sources):
    """Connections to web ports of the server, one from each of these addresses, which the client has meanwhile."""
    for source in sources:
        length = 64 if ":" in source else 24
        p.command(p.lab.client, f"ip address add {source}/{length} dev lan0" + (" nodad" if ":" in source else ""),
                  f"ip address del {source}/{length} dev lan0")
        try:
            p.lab.client.inside(socket.create_connection, (V6 if ":" in source else V4, HTTP_PORT), 2,
                                (source, 0)).close()
        except OSError:
            continue


def known(p, *sources):
    """The edge's doctor after these connections."""
    p.lab.wait_for(lambda: p.edge.status()["streams"]["intercepting"], "connections to be taken over")
    knock(p, *sources)
    return p.asked(p.edge)


def _let(p, **hub):
    p.hub.config.update(hub)
    p.reconnect()


@broken("the far side forwards nothing", FORBIDDEN, r"'forwarding: on'", kind=5, program="sysctl", family="IPv4",
        mend=lambda p: _let(p, forwarding="on"))
def _no_forwarding(p):
    streams(p)
    p.sysctl(p.far, net__ipv4__ip_forward=0)
    p.connect()
    return known(p, *(f"192.168.10.{host}" for host in (7, 8, 9)))


@broken("the far side accepts other destinations only", FORBIDDEN, r"the destinations in streams\.accept", kind=5,
        program="braid.yaml", family="IPv6", mend=lambda p: _let(p, streams={"enabled": "on"}))
def _not_accepted(p):
    streams(p, accept=[{"ports": 443}])
    p.connect()
    return known(p, *(f"fd00:0:0:10::{host}" for host in (7, 8, 9)))


def _tell_the_far_side(p):
    p.hub.config["peers"][0]["prefixes"].append("192.168.77.0/24")
    p.hub.config["device"]["routes"].append("192.168.77.0/24")
    p.reconnect()


@broken("hosts that the far side does not know", FORBIDDEN, r"the hosts' network in the peer's prefixes", kind=5,
        program="iproute2", family="IPv4", mend=_tell_the_far_side)
def _unknown_hosts(p):
    streams(p)
    lan(p, "192.168.77.0/24")
    p.command(p.space, "ip address add 192.168.77.1/24 dev lan0", "ip address del 192.168.77.1/24 dev lan0")
    p.connect()
    return known(p, *(f"192.168.77.{host}" for host in (7, 8, 9)))


@broken("the far side carries no streams", r"no connection is taken over, although a peer is up",
        r"both gateways need the section 'streams'", kind=5, program="braid.yaml", family="both",
        mend=lambda p: _let(p, streams={"enabled": "on"}))
def _no_streams(p):
    streams(p)
    del p.hub.config["streams"]
    p.connect()
    return p.asked(p.edge)


# ---- kind 6: between peers

def _across(p, address):
    """A host behind the first edge calls one behind the second, whose networks both edges route into the tunnel."""
    other = p.lab.sites[1].gateway
    for gateway, site in ((p.edge, p.lab.sites[1]), (other, p.lab.sites[0])):
        gateway.config["device"]["routes"] += site.lan
        gateway.config["peers"][0]["prefixes"] += site.lan
    p.start(p.hub, p.edge, other)
    for gateway in (p.edge, other):
        gateway.wait_up(subflows=2)
    time.sleep(SETTLED)
    p.lab.client.run("ping", "-n", "-q", "-c", "40", "-i", "0.02", "-W", "1", address, check=False)
    return p.asked(p.hub)


def _let_across(p):
    p.hub.config["between-peers"] = "on"
    p.reconnect()


for _family, _address in (("IPv4", 0), ("IPv6", 1)):
    @broken(f"edges that do not reach each other, {_family}",
            r"packets from a peer to another one were dropped \(between_peers\)", r"'between-peers: on' here", kind=6,
            program="braid.yaml", family=_family, mend=_let_across)
    def _between(p, index=_address):
        return _across(p, p.lab.sites[1].client_address[index])


# ---- kind 7: names

NAME = "hub.example.org"
SERVERS = ("10.0.0.2", "10.0.1.2")  # at the far end of each uplink


def named(p, *answers):
    """The endpoint is a name; a server at each uplink's far end answers so. None: there is no server."""
    p.edge.config["peers"][0]["endpoints"] = [f"{NAME}:{PORT}"]
    for index, answer in enumerate(answers):
        p.edge.config["uplinks"][index]["resolvers"] = [SERVERS[index]]
        if answer is not None:
            serve(p, index, answer)


def serve(p, index, answer):
    server = Dnsmasq(p.lab, {NAME: answer}, namespace=p.far, listen=SERVERS[index])
    p.undo(p.lab.stop, server.process)
    return server


@broken("a name server that does not answer",
        rf"{NAME} over lte: no server (answers|can be reached, or each of them refuses to answer) \(10\.0\.1\.2 of",
        r"see to the name servers of lte0", kind=7, program="dnsmasq", family="IPv4",
        mend=lambda p: serve(p, 1, PUBLIC[0]))
def _silent(p):
    p.start(p.hub)
    named(p, PUBLIC[0], None)
    return p.asked(p.edge)


@broken("a name that a server does not know",
        rf"{NAME} over dsl: no server can be reached, or each of them refuses to answer",
        r"give others by uplinks\.resolvers", kind=7, program="dnsmasq", family="IPv4",
        mend=lambda p: p.edge.config["uplinks"][0].update(resolvers=[SERVERS[1]]))
def _unknown_name(p):
    p.start(p.hub)
    named(p, None, PUBLIC[0])
    server = Dnsmasq(p.lab, {"other.example.org": "192.0.2.1"}, namespace=p.far, listen=SERVERS[0])
    p.undo(p.lab.stop, server.process)
    # By this uplink the second server is reached as well: it is an address of the hub.
    return p.asked(p.edge)


def _log_in(p):
    p.lab.stop(p.portal.process)
    serve(p, 0, PUBLIC[0])


@broken("a captive portal answers every name",
        rf"{NAME} over dsl is 10\.66\.66\.66, say .* over lte it is 203\.0\.113\.1",
        r"log in: open http://10\.66\.66\.66/", kind=7, program="dnsmasq", family="IPv4", mend=_log_in)
def _portal(p):
    p.start(p.hub)
    named(p, None, PUBLIC[0])
    p.portal = serve(p, 0, "10.66.66.66")
    return p.asked(p.edge)


PROVIDER = "198.51.100.53"


def _public_server(p):
    server = Dnsmasq(p.lab, {NAME: PUBLIC[0]}, namespace=p.lab.server, listen=V4)
    p.undo(p.lab.stop, server.process)
    (p.lab.directory / "resolv.conf").write_text(f"nameserver {V4}\n", encoding="ascii")


@broken("a provider's name server that the tunnel takes away",
        rf"the name server {PROVIDER} \(/etc/resolv\.conf\) is asked "
        r"through the tunnel, and does not answer there",
        r"dns: \{servers: \[ADDRESS\]\}.*or give the host public ones", kind=7, program="resolv.conf", family="IPv4",
        mend=_public_server)
def _taken_away(p):
    everything(p)
    p.connect()
    return p.asking(PROVIDER)


@broken("a private name server behind no peer", r"the name server 10\.64\.0\.1 .*its address is behind no peer",
        r"give the host public ones", kind=7, program="resolv.conf", family="IPv4", mend=_public_server)
def _private_server(p):
    everything(p)
    p.start(p.hub)
    return p.asking("10.64.0.1")


HANDED = r"the name servers 192\.168\.100\.2 \(dns\.servers\) are not handed to this host"


def _resolvconf(p):
    """A program of that name, which does nothing, in a folder of programs."""
    folder = p.lab.directory / "programs"
    folder.mkdir(exist_ok=True)
    (folder / "resolvconf").write_text("#!/bin/sh\nexit 0\n", encoding="ascii")
    (folder / "resolvconf").chmod(0o755)
    p.undo((folder / "resolvconf").unlink)
    return folder


def _handing(p):
    """A doctor that finds the folder of programs first."""
    p.edge.config["dns"] = {"servers": [V4]}
    p.undo(p.space.run, binary("braidctl"), "dns", "remove", p.edge.path, check=False)
    folder = p.lab.directory / "programs"
    return p.asked(p.edge, wrapper=["sh", "-ec", f'PATH={folder}:$PATH; exec "$0" "$@"'])


@broken("name servers, and no program that takes them", HANDED + r": it has neither systemd-resolved nor resolvconf",
        r"apt install resolvconf", kind=7, program="no resolvconf", family="IPv4", mend=_resolvconf)
def _nobody_takes(p):
    p.start(p.hub)
    return _handing(p)


@broken("name servers that were not handed over", HANDED, r"(?P<run>braidctl dns set \S+edge\.yaml)", kind=7,
        program="resolvconf, as recorded", family="IPv4")
def _not_handed(p):
    _resolvconf(p)
    p.edge.config["dns"] = {"servers": [V4]}
    p.connect()
    return _handing(p)
