"""A second concentrator for the server of a lab. Both concentrators need NAT, because the server may answer to either.

    edge ==wifi==lte== concentrator ----- second
                        203.0.113.1       203.0.113.2
                            |                 |
                       192.168.100.0/24  192.168.102.0/24
                            '---- server -----'
"""

import copy
import threading
import time
import urllib.request

from .gateway import PORT, Gateway, make_identities
from .lab import tune
from .netns import join
from .site import PUBLIC, SERVER_LAN, server_addresses

ADDRESS = "203.0.113.2"
_BETWEEN = ("203.0.113.129", "203.0.113.130")
_LAN = ("192.168.102.1", "192.168.102.2")
GROUP = "hubs"


def add_second(lab, edge=None, **settings):
    """Makes the second concentrator of a lab whose gateways are made but not started, and adds it to the edge's
    configuration. `edge`: changes of the edge's configuration; `settings`: of both concentrators. Returns its gateway,
    not started."""
    space = lab.namespace("second")
    tune(space)
    join(lab.concentrator, "hop0", space, "hop0")
    lab.concentrator.address("hop0", _BETWEEN[0] + "/30")
    space.address("hop0", _BETWEEN[1] + "/30")
    space.address("lo", ADDRESS + "/32")
    space.route("0.0.0.0/0", "via", _BETWEEN[0])
    lab.concentrator.route(ADDRESS + "/32", "via", _BETWEEN[1], "src", PUBLIC[0])
    join(space, "lan0", lab.server, "lan1")
    space.address("lan0", _LAN[0] + "/24")
    lab.server.address("lan1", _LAN[1] + "/24")
    space.route(server_addresses()[0] + "/32", "via", _LAN[1])

    pin = make_identities(lab.directory, ["second"])["second"]
    first = lab.gateway.config
    first.update(nat="on", **copy.deepcopy(settings))
    config = copy.deepcopy(first)
    config["identity"] = {"key": "second.key", "certificate": "second.crt"}
    config["control"] = {"socket": str(lab.directory / "second.sock")}
    config["state"] = str(lab.directory / "second.state")
    config["device"]["addresses"] = ["10.255.0.254/24"]
    gateway = Gateway(lab, "second", space, config)

    for site in lab.sites:
        peers = site.gateway.config["peers"]
        peers[0]["group"] = GROUP
        peers.append({"name": "second", "pin": pin, "group": GROUP, "endpoints": [f"{ADDRESS}:{PORT}"],
                      "prefixes": ["10.255.0.254/32", *SERVER_LAN]})
        site.gateway.config.update(copy.deepcopy(edge or {}))
    return gateway


def used(gateway):
    """The name of the peer that an edge uses."""
    return next(peer["name"] for peer in gateway.status()["peers"] if peer["in_use"])


def seconds_to_new_connection(lab, url, limit=10.0, interval=0.05):
    """Begins a connection every `interval`. Returns the seconds until one has brought an answer."""
    began = time.monotonic()
    done, took = threading.Event(), []

    def ask():
        try:
            lab.client.inside(_fetch, url)
        except OSError:
            return
        took.append(time.monotonic() - began)
        done.set()

    while not done.wait(interval) and time.monotonic() - began < limit:
        threading.Thread(target=ask, daemon=True).start()
    return min(took, default=limit)


def _fetch(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        answer.read()
