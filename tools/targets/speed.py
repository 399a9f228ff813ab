"""Targets of the data plane: the cost of a byte, a small packet and a round trip, compared with wireguard-go."""

import functools
import math

from lab import median
from lab.gateway import shares
from lab.measure import round_trips

from . import require, target
from ._duel import DIRECT, OPTIONS, PROGRAMS, SERVER, Duel, datagrams, ratio, rounded, stream
from .pair import LEAST_SHARE

BRAID, RIVAL, TWO_LINKS = "braid", "wireguard-go", "braid, 2 links"
SMALL, SMALL_RATE = 64, 50_000  # bytes of UDP payload, datagrams a second
MOST_LOST = 0.001
RATE_KEPT = 0.98  # share of SMALL_RATE: a client that sends less measures something else
PINGS, QUICK_PINGS, PING_PAUSE = 150, 20, 0.05


@target("speed.1", "one TCP stream over an unlimited link: CPU of both daemons for a byte of payload / "
        "wireguard-go's, median of runs in turns", "ratio", at_most=0.7, programs=PROGRAMS, options=OPTIONS)
def cost_of_a_byte(quick, settings):
    with Duel(quick, settings) as duel:
        results = duel.rounds(stream)
        return ratio(results, "ns per byte", BRAID, RIVAL), duel.detail(results)


@target("speed.2", "one TCP stream over an unlimited link: throughput / wireguard-go's, median of runs in turns; the "
        "same with eight streams in the detail", "ratio", at_least=1.3, programs=PROGRAMS, options=OPTIONS)
def throughput(quick, settings):
    with Duel(quick, settings) as duel:
        results = duel.rounds(stream)
        many = duel.rounds(functools.partial(stream, parallel=8))
        detail = duel.detail(results)
        detail["eight streams"] = {"ratio": rounded(ratio(many, "Gbit/s", BRAID, RIVAL)),
                                   **{name: duel.detail(many)[name] for name in many}}
        return ratio(results, "Gbit/s", BRAID, RIVAL), detail


@target("speed.3", f"{SMALL}-byte UDP at {SMALL_RATE:,}/s: CPU of both daemons for a packet that arrived / "
        f"wireguard-go's, median of runs in turns; Braid loses at most {MOST_LOST:.1%}", "ratio", at_most=0.25,
        programs=PROGRAMS, options=OPTIONS)
def cost_of_a_small_packet(quick, settings):
    with Duel(quick, settings) as duel:
        results = duel.rounds(functools.partial(datagrams, size=SMALL, rate=SMALL_RATE))
        detail = duel.detail(results)
        lost, sent = (median(each[key] for each in results[BRAID]) for key in ("lost", "sent a second"))
        require(detail, lost <= MOST_LOST, f"{lost:.2%} lost, at most {MOST_LOST:.1%} may be")
        require(detail, sent >= RATE_KEPT * SMALL_RATE, f"the client sent {sent:.0f} of {SMALL_RATE} a second")
        return ratio(results, "us per packet", BRAID, RIVAL), detail


def _stream_and_shares(duel, contender):
    before = duel.lab.edge_gateway.paths()
    out = stream(duel, contender)
    used = shares(before, duel.lab.edge_gateway.paths(), "sent_bytes")
    return out | {"the link with less, share": min(used.values())}


@target("speed.4", "one TCP stream over two links / over one: CPU of both daemons for a byte of payload, median of "
        "runs in turns; no segment out of order", "ratio", at_most=1.10, programs=PROGRAMS, options=OPTIONS)
def cost_of_a_second_link(quick, settings):
    with Duel(quick, settings, uplinks=(1, 2), rival=False) as duel:
        results = duel.rounds(_stream_and_shares)
        detail = duel.detail(results)
        least = min(each["the link with less, share"] for each in results[TWO_LINKS])
        require(detail, least >= LEAST_SHARE, f"both links, of which one carried {least:.2f}")
        disorder = sum(each["out of order"] for each in results[TWO_LINKS])
        require(detail, disorder == 0, f"{disorder} segments out of order over two links")
        return ratio(results, "ns per byte", TWO_LINKS, BRAID), detail


def _added(duel, _):
    """Milliseconds by which a ping takes longer through the tunnel than by forwarding alone; difference of the
    medians."""
    count = QUICK_PINGS if duel.quick else PINGS
    plain, inside = (median(round_trips(duel.lab.client, address, count, PING_PAUSE)) for address in (DIRECT, SERVER))
    if not plain < inside < math.inf:
        raise RuntimeError(f"a ping takes {plain} ms beside the tunnel and {inside} through it")
    return {"added ms": inside - plain, "plain ms": plain}


@target("speed.5", "median round trip of a ping through two idle daemons, above that of plain forwarding / "
        "wireguard-go's, median of runs in turns", "ratio", at_most=0.6, programs=PROGRAMS, options=OPTIONS)
def round_trip(quick, settings):
    with Duel(quick, settings) as duel:
        results = duel.rounds(_added)
        detail = duel.detail(results)
        del detail["seconds of a run"]
        detail["pings of a run"] = QUICK_PINGS if quick else PINGS
        return ratio(results, "added ms", BRAID, RIVAL), detail
