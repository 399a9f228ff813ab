"""Broken set-ups of issue 48 between the gateways: uplinks and copies (9), kernels (10), slow lines (11), clouds and
addresses (12)."""

import signal
import socket
import sys
import threading
import time

from lab.gateway import PORT, binary
from lab.offloads import REFUSES_RUNS, damage_merged
from lab.site import PUBLIC

from ._broken import SETTLED, Setups
from ._broken_hosts import by_ipv6, everything, lan

SETUPS = Setups()
broken = SETUPS.broken
SINK = 5001  # a port of hosts behind the hub


# ---- kind 9: paths are not uplinks

def _second(p):
    p.edge.config["uplinks"] = p.fresh(p.edge)["uplinks"]


@broken("copies, and one uplink with two families",
        r"recovery is to send packets twice \(redundant\), and dsl is the only uplink",
        r"add an uplink; or recovery\.policy: adaptive", kind=9, program="braid.yaml", family="both", mend=_second)
def _one_uplink(p):
    p.start(p.hub)
    p.edge.config["peers"][0]["endpoints"].append(f"[{PUBLIC[1]}]:{PORT}")
    p.edge.config["recovery"] = {"policy": "redundant"}
    del p.edge.config["uplinks"][1]
    return p.asked(p.edge)


def _dead(p, rule):
    """The hub's firewall drops datagrams of lte; the edge has run for a while."""
    p.nft(p.far, f"table inet t {{ chain i {{ {rule} drop; }} }}")
    time.sleep(2 * SETTLED)  # `keepalive` is 10 s
    return p.asked(p.edge)


def _mended(p):
    p.far.run("nft", "flush", "ruleset")
    p.edge.wait_path("lte", "active", 30)


@broken("one family of an uplink leads nowhere",
        r"lte to concentrator at \[2001:db8::1\]:4433: .*(no answer comes back|dead one way)",
        r"see to the line itself|find who drops UDP", kind=9, program="nftables", family="IPv6", mend=_mended)
def _one_family(p):
    p.edge.config["peers"][0]["endpoints"].append(f"[{PUBLIC[1]}]:{PORT}")
    p.start(p.hub, p.edge)
    p.edge.wait_up(subflows=4)
    return _dead(p, f"type filter hook prerouting priority -300; iifname lte0 meta nfproto ipv6 udp dport {PORT}")


# ---- kind 10: kernels

def _send(p, to, size):
    """A host behind the edge sends that many bytes to one behind the hub."""
    def receive():
        end = socket.create_server((to, SINK), family=socket.AF_INET6 if ":" in to else socket.AF_INET)
        end.settimeout(20)
        return end

    with (p.lab.server.inside(receive) as listener,
          p.lab.client.inside(socket.create_connection, (to, SINK), 10) as near):
        far, _ = listener.accept()
        sender = threading.Thread(target=near.sendall, args=(bytes(size),))
        sender.start()
        with far:
            while size > 0 and (part := len(far.recv(1 << 16))):
                size -= part
        sender.join()


def _no_merging(p):
    p.far.run("ethtool", "-K", "dsl0", "gro", "off")
    p.far.run("nft", "flush", "ruleset")
    p.reconnect()


@broken("a network card that damages what it merges",
        r"\d+ datagrams came damaged where the kernel had merged several",
        r"ethtool -K INTERFACE gro off .*restart the daemon", kind=10, program="veth", family="IPv4",
        mend=_no_merging)
def _damaging(p):
    del p.edge.config["uplinks"][1]
    p.edge.config["offloads"] = {"sockets": "off"}
    p.start(p.hub, p.edge)
    p.edge.wait_up(subflows=1)
    p.undo(p.far.run, "ethtool", "-K", "dsl0", "gro", "off")
    p.undo(p.far.run, "nft", "flush", "ruleset")
    damage_merged(p.space, p.far, "dsl0", PORT)
    for _ in range(10):
        _send(p, "192.168.100.2", 2_000_000)
        if p.hub.status()["host_traffic"]["socket_merging_stopped"]:
            break
    time.sleep(SETTLED)
    return p.asked(p.hub)


def _no_runs(p):
    p.hub.config["offloads"] = {"device": "off"}
    p.reconnect()


@broken("a kernel that takes no runs of packets", r"refuses several packets in one write to the device",
        r"offloads\.device: off", kind=10, program="tun", family="both", mend=_no_runs)
def _refusing(p):
    p.hub.wrapper = REFUSES_RUNS
    p.undo(setattr, p.hub, "wrapper", [])
    p.connect()
    for to in ("192.168.100.2", "fd00:0:0:100::2"):
        _send(p, to, 2_000_000)
    return p.asked(p.hub)


# ---- kind 11: slow and far

@broken("a path that is dead one way",
        r"lte to concentrator .*dead one way, it is (suspect|failed): nothing comes from the peer",
        r"find who drops UDP from", kind=11, program="nftables", family="IPv4", mend=_mended)
def _one_way(p):
    p.connect()
    return _dead(p, f"type filter hook output priority 0; oifname lte0 udp sport {PORT}")


LOAD = """
import socket, sys, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.connect(("10.0.1.2", 9))
while True:
    try:
        end.send(bytes(1200))
    except OSError:
        pass
    time.sleep(1200 * 8 / 1.2e6)
"""


def _unload(p):
    p.lab.stop(p.load)
    p.lab.stop(p.test, signal.SIGINT)
    time.sleep(2)
    p.edge.ctl("test", "--seconds", "2", "--path", "lte")


@broken("a queue of seconds in the modem", r"lte to concentrator .*answers take .*packets wait in a queue on the way",
        r"uplinks\.rate-limit of lte.*see who else fills it", kind=11, program="tbf", family="IPv4", mend=_unload)
def _queue(p):
    p.start(p.hub, p.edge)
    p.edge.wait_up(subflows=2)
    p.command(p.space, "tc qdisc add dev lte0 root tbf rate 1mbit burst 3000 limit 400000",
              "tc qdisc del dev lte0 root")
    p.load = p.lab.start(p.space, "load", [sys.executable, "-c", LOAD])
    p.undo(p.lab.stop, p.load)
    # Traffic of its own, whose answers show the queue
    p.test = p.lab.start(p.space, "test", [binary("braidctl"), "test", "--seconds", "60", "--path", "lte", "--socket",
                                           p.edge.socket])
    p.undo(p.lab.stop, p.test, signal.SIGINT)
    p.lab.wait_for(lambda: any(path["min_rtt_ms"] > 1700 for path in p.edge.paths()), "a slow path", 60)
    return p.asked(p.edge)


def _whole(p):
    p.far.run("nft", "flush", "ruleset")


@broken("large datagrams do not pass", r"packets above \d+ bytes are lost on the way", r"tracepath", kind=11,
        program="nftables", family="IPv6", mend=_whole)
def _hole(p):
    by_ipv6(p)
    p.nft(p.far, f"table inet t {{ chain i {{ type filter hook prerouting priority -300; udp dport {PORT} "
                 "meta length > 1290 drop; } }")
    p.start(p.hub)
    return p.asked(p.edge)


@broken("no handshake passes", r"(datagrams of 1200 bytes do not|not finished in time)",
        r"let UDP datagrams of 1200 bytes pass", kind=11, program="nftables", family="IPv4", mend=_whole)
def _deep_hole(p):
    p.nft(p.far, f"table inet t {{ chain i {{ type filter hook prerouting priority -300; udp dport {PORT} "
                 "meta length > 700 drop; } }")
    p.start(p.hub)
    return p.asked(p.edge)


# ---- kind 12: clouds and addresses

def _come(p):
    p.command(p.far, "ip -6 address add 2001:db8::77/128 dev lo nodad", "ip -6 address del 2001:db8::77/128 dev lo")


@broken("an address to listen at that is not there",
        r"cannot listen at \[2001:db8::77\]:4433: no interface has this address",
        r"give this host the address, or listen at", kind=12, program="iproute2", family="IPv6", mend=_come)
def _no_address(p):
    p.hub.config["listen"] = ["[2001:db8::77]:4433"]
    return p.asked(p.hub)


def _come_later(p):
    p.command(p.far, "ip -4 address add 203.0.113.77/32 dev lo", "ip -4 address del 203.0.113.77/32 dev lo")
    p.edge.config["peers"][0]["endpoints"] = [f"203.0.113.77:{PORT}"]
    p.start(p.edge)
    p.edge.wait_up(subflows=2)


@broken("a gateway that waits for its address",
        r"cannot listen at 203\.0\.113\.77:4433: no interface has this address", r"give this host the address",
        kind=12, program="braidd", family="IPv4", mend=_come_later)
def _waits(p):
    p.hub.config["listen"] = [f"203.0.113.77:{PORT}"]
    p.start(p.hub)
    time.sleep(SETTLED)
    return p.asked(p.hub)


PUBLIC_LAN = "2001:db8:51::/64"


def public_lan(p):
    """The LAN has public addresses, and the edge takes everything."""
    everything(p)
    p.command(p.space, "ip -6 address add 2001:db8:51::1/64 dev lan0 nodad",
              "ip -6 address del 2001:db8:51::1/64 dev lan0")
    p.command(p.lab.client, "ip -6 address add 2001:db8:51::2/64 dev lan0 nodad",
              "ip -6 address del 2001:db8:51::2/64 dev lan0")


def _tell_the_hub(p):
    p.hub.config["peers"][0]["prefixes"].append(PUBLIC_LAN)
    p.hub.config["device"]["routes"].append(PUBLIC_LAN)
    p.reconnect()


@broken("a public prefix that the hub does not know: at the hub", r"packets of peers were dropped.*foreign_source",
        r"add their network to the peer's 'prefixes'", kind=12, program="router advertisements", family="IPv6",
        mend=_tell_the_hub)
def _foreign(p):
    public_lan(p)
    p.connect()
    p.lab.client.run("ping", "-n", "-q", "-c", "40", "-i", "0.02", "-W", "1", "-I", "2001:db8:51::2", "fd00:0:0:100::2",
                     check=False)
    return p.asked(p.hub)


@broken("a public prefix that the hub does not know: at the edge",
        r"hosts at lan0 have addresses of 2001:db8:51::/64, which is not among device\.networks",
        r'put "2001:db8:51::/64" into device\.networks', kind=12, program="router advertisements", family="IPv6",
        mend=lambda p: lan(p, PUBLIC_LAN))
def _untold(p):
    p.start(p.hub)
    public_lan(p)
    lan(p)
    return p.asked(p.edge)


def _forwarded(p):
    p.far.run("nft", "flush", "ruleset")
    p.edge.wait_up(subflows=2, timeout=40)


@broken("a NAT router that forwards no port", r"no datagram at all has arrived", r"forward it in a NAT router",
        kind=12, program="nftables", family="IPv4", mend=_forwarded)
def _no_port(p):
    p.nft(p.far, f"table inet t {{ chain i {{ type filter hook prerouting priority -300; udp dport {PORT} drop; }} }}")
    p.start(p.hub, p.edge)
    time.sleep(SETTLED)
    return p.asked(p.hub)


TAKEN = """
import socket, time
taken = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
taken.bind(("::", %d))
print("ready", flush=True)
time.sleep(99)
""" % PORT


@broken("the port is taken", rf"cannot listen at \[::\]:{PORT}: Address already in use", r"ss -lunp", kind=12,
        program="another program", family="IPv6", mend=lambda p: p.lab.stop(p.squatter))
def _taken(p):
    p.squatter = p.lab.start(p.far, "squatter", [sys.executable, "-c", TAKEN])
    p.undo(p.lab.stop, p.squatter)
    p.lab.wait_for_line("squatter", "ready")
    return p.asked(p.hub)


@broken("a forward takes the gateway's own port", r"takes the port that this gateway listens on",
        r"choose another port", kind=12, program="braid.yaml", family="IPv4",
        mend=lambda p: p.hub.config["forwards"][0].update(port=8080))
def _own_port(p):
    p.hub.config["forwards"] = [{"protocol": "udp", "port": PORT, "to": "192.168.10.2:53"}]
    return p.asked(p.hub)


@broken("an uplink without a way of the endpoint's family", r"lte: lte0 has no IPv6 default route",
        r"let router advertisements set one", kind=12, program="iproute2", family="IPv6", mend=lambda p: p.plug())
def _no_family(p):
    p.start(p.hub)
    by_ipv6(p)
    p.sysctl(p.space, net__ipv6__conf__lte0__accept_ra=0)  # another program reads the advertisements
    p.unplug("ip -6 route del default dev lte0")
    return p.asked(p.edge)
