"""Target of several concentrators: how long a client gets no answer when the one in use fails permanently."""

import signal

from lab import Download, Lab, Link
from lab.second import add_second, seconds_to_new_connection, used
from lab.services import Nginx

from . import target
from .pair import PROGRAMS

LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
ROUNDS = 5


def _round(seed):
    with Lab(LINKS, seed=seed) as lab:
        nginx = Nginx(lab)
        lab.make_gateways()
        second = add_second(lab)
        for gateway in (second, *lab.gateways()):
            gateway.start()
        lab.wait_for(lambda: all(peer["up"] for peer in lab.edge_gateway.status()["peers"]), "both concentrators")
        root = f"http://{Lab.server_addresses()[0]}"
        small, large = nginx.add("small", 1000), nginx.add("large", 60_000_000)
        download = Download(lab, root + large)
        download.wait_for_size(5_000_000)
        if used(lab.edge_gateway) != "concentrator":
            raise RuntimeError("the first concentrator was to be in use")
        lab.gateway.stop(signal.SIGKILL)
        seconds = seconds_to_new_connection(lab, root + small)
        if used(lab.edge_gateway) != "second":
            raise RuntimeError("the second concentrator was to be in use")
        download.stop()
        return seconds


@target("operate.5", "seconds from kill -9 of the concentrator in use, which carries a download and is not started "
        "again, until a new connection through a second one has brought an answer; worst of 5", "s", at_most=1.5,
        programs=PROGRAMS)
def concentrator_dies():
    seconds = [round(_round(seed), 6) for seed in range(1, ROUNDS + 1)]
    return max(seconds), {"rounds_s": seconds, "links": "50 Mbit/s 20 ms, 30 Mbit/s 60 ms",
                          "new connections": "one each 50 ms"}
