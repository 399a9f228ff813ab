"""Targets of a gateway whose peers attack it with other programs than ours."""

import contextlib
import ipaddress
import json
import subprocess
import time

from lab import Lab, Wire, binary
from lab.gateway import PORT
from lab.site import PUBLIC

from . import MISSING, require, target

ADDRESSES = 4096
NETWORKS = {"IPv4": "10.77.0.0/20", "IPv6": "2001:db8:77::/52"}  # of the attacker: addresses, or links (/64)
PUBLIC_OF = {"IPv4": f"{PUBLIC[0]}:{PORT}", "IPv6": f"[{PUBLIC[1]}]:{PORT}"}
WAY = {"IPv4": "192.168.100.2", "IPv6": "fd00:0:0:100::2"}  # to the attacker, from the concentrator
KNOWN, NEW = 3, 3  # honest peers
FINISH, BEGIN, RATE = 12, 50, 1500  # seconds in which the attacker finishes and begins handshakes; a second
STRANGERS = [f"10.{100 + network}.0.{host}" for network in range(16) for host in range(1, 33)]
KEPT = 0.5  # share of its rate at which a flood must have gone on, beside daemons on the same processors
SOON = 1.0  # seconds: a peer must be up by then
PATIENCE = 5  # seconds: one that is not up by then counts with this time


def addresses(family):
    network = ipaddress.ip_network(NETWORKS[family])
    step = 1 if family == "IPv4" else 1 << 64
    return [str(network.network_address + number * step + (family == "IPv6")) for number in range(ADDRESSES)]


def _give_addresses(lab, family):
    """All addresses of the attacker's network are the server's, where floods come from."""
    way = "-6" if family == "IPv6" else "-4"
    lab.server.ip(way, "route", "add", "local", NETWORKS[family], "dev", "lo")
    lab.server.sysctl(net__ipv6__ip_nonlocal_bind=1)
    lab.concentrator.route(NETWORKS[family], "via", WAY[family])
    lab.server.ip("route", "add", "local", "10.96.0.0/11", "dev", "lo")
    lab.concentrator.route("10.96.0.0/11", "via", WAY["IPv4"])


@contextlib.contextmanager
def _flood(lab, *words):
    pin = lab.edge_gateway.config["peers"][0]["pin"]
    process = lab.server.popen(binary("flood"), *words, "--pin", pin, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _until_up(site):
    """Seconds from the start of the edge's daemon until its peer is up."""
    began = time.monotonic()
    site.gateway.start()
    while time.monotonic() - began < PATIENCE:
        if site.gateway.up():
            return round(time.monotonic() - began, 3)
        time.sleep(0.01)
    return float(PATIENCE)


def _limited(lab):
    return lab.gateway.drops()["handshake_limit"]


def _attacked(family):
    """What an attack from addresses of that family leaves to honest peers."""
    with Lab([Wire("wire")], sites=KNOWN + NEW + 1) as lab:
        lab.make_gateways()
        known, new, hostile = lab.sites[:KNOWN], lab.sites[KNOWN:-1], lab.sites[-1]
        _give_addresses(lab, family)
        lab.gateway.start()
        for site in known:
            site.gateway.start()
            site.gateway.wait_up()
        key, certificate = (lab.directory / f"{hostile.gateway.name}.{suffix}" for suffix in ("key", "crt"))
        with _flood(lab, "peer", "--to", PUBLIC_OF[family], "--from", *addresses(family), "--rate", RATE, "--key", key,
                    "--certificate", certificate, "--finish", FINISH, "--seconds", BEGIN) as attack:
            time.sleep(FINISH + 5)
            result = {"new": [_until_up(site) for site in new]}
            with _flood(lab, "handshakes", "--to", PUBLIC_OF["IPv4"], "--from", *STRANGERS, "--rate", RATE, "--early",
                        0, "--seconds", BEGIN) as strangers:
                time.sleep(3)
                before, began = _limited(lab), time.monotonic()
                result["known"] = []
                for site in known:
                    site.gateway.stop(9)
                    result["known"].append(_until_up(site))
                result["limited a second"] = round((_limited(lab) - before) / (time.monotonic() - began))
                result["floods went on"] = strangers.poll() is None and attack.poll() is None
            result.update(json.loads(attack.communicate(timeout=BEGIN + 60)[0]))
    return result


@target("guard.2", f"known hosts that a key with {ADDRESSES} addresses evicts (IPv4, and IPv6 links): restarted peers "
        f"that are not up within {SOON:g} s while strangers use up what strangers have; a new peer is up within "
        f"{SOON:g} s, too", "hosts", at_most=0, programs=["braidd", "braidctl", "flood"])
def key_with_many_addresses():
    return verdict({family: _attacked(family) for family in NETWORKS})


def verdict(detail):
    """(hosts, detail) of {family: result of _attacked()}."""
    value = sum(seconds > SOON for result in detail.values() for seconds in result["known"])
    for family, result in list(detail.items()):
        require(result, max(result["new"]) <= SOON, f"a new peer is up after {max(result['new'])} s")
        require(result, result["floods went on"], "a flood ended before the measurement")
        require(result, result["finished"] >= 64, f"the attacker finished {result['finished']} handshakes only")
        require(result, result["handshakes"] >= KEPT * RATE * BEGIN / 2, f"{result['handshakes']} handshakes begun")
        require(result, result["limited a second"] >= KEPT * RATE, "the strangers' rations were not used up")
        if MISSING in result:
            require(detail, False, f"{family}: {result[MISSING]}")
    return value, detail
