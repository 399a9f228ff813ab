"""Targets of `device.when-down`: what leaves in clear by the uplinks with `block`, and how long LAN hosts are without a
way with `direct`."""

import bisect
import collections
import contextlib
import dataclasses
import itertools
import os
import signal
import socket
import struct
import threading
import time

from . import at_least, option, require, target
from ._leak_events import EVENTS, VARIANTS, World, sequence
from ._leak_lab import ALLOWED, ELSEWHERE, TUNNEL, Place

EVENT_COUNT = 200
CONTROL = 0.6  # seconds in which the look-out must see what leaves in clear
CONTROL_LEAST = 20  # datagrams of each host, family and uplink in that time
LIMIT = 570  # seconds for all events
NAMED, SHOWN = 20, 8  # events with leaks, and packets of each, that the detail shows, most first
ROUNDS = 20
WINDOW = 5.0  # seconds after the hub's death in which requests count
ANSWER = 0.5  # seconds in which a request must be answered


@dataclasses.dataclass
class Began:
    """An event that happened."""

    at: float
    name: str
    ran: bool  # the daemon, before it
    did: str | None = None
    variants: list = dataclasses.field(default_factory=list)  # of the configuration, after it


def source_of(text, lan):
    """Which host sent what a LookOut describes so."""
    return "LAN host" if any(f"from {address} " in text for address in lan) else "edge"


def family_of(text):
    return text.split(" ", 1)[0] if text.startswith("IPv") else "other"


def control(world, out, lan):
    """With the daemon stopped and the guard released: the host, family and uplink of which not enough is seen."""
    place, missing = world.place, []
    if world.running:
        world.stop()
    place.braidctl("release")
    world.restore_all()
    for index, device in enumerate(place.devices):
        other = place.devices[1 - index]
        world.edge.ip("link", "set", other, "down")
        before = len(out.leaks)
        time.sleep(CONTROL)
        seen = collections.Counter((source_of(text, lan), family_of(text)) for _, far, text in out.leaks[before:]
                                   if far == place.site.far_device(index))
        missing += [f"{host} {family} {device}: {seen[host, family]}" for host in ("LAN host", "edge")
                    for family in ("IPv4", "IPv6") if seen[host, family] < CONTROL_LEAST]
        world.restore(1 - index)
    return missing


def told(leaks, began, lan):
    """The leaks of each event in which there were some, most first; seconds count from the event's beginning.
    `began`: [Began]."""
    starts, groups = [each.at for each in began], collections.defaultdict(list)
    for leak in leaks:
        groups[max(bisect.bisect_right(starts, leak[0]) - 1, 0)].append(leak)
    rows = []
    for number, found in groups.items():
        each, packets = began[number], collections.Counter((device, text) for _, device, text in found)
        rows.append({
            "count": len(found), "event": each.name, "number": number, "did": each.did, "ran before": each.ran,
            "variants": each.variants, "events before": [other.name for other in began[max(number - 3, 0):number]],
            "from s": round(found[0][0] - each.at, 3), "until s": round(found[-1][0] - each.at, 3),
            "of": dict(collections.Counter(f"{source_of(text, lan)} {family_of(text)}" for _, _, text in found)),
            "packets": {f"{device}: {text}": count for (device, text), count in packets.most_common(SHOWN)}})
    return sorted(rows, key=lambda row: -row["count"])


def happen(world, events, began, detail, dwell=(0.3, 0.8)):
    """Lets events happen and notes each in `began`. Every sender must have sent in each of them."""
    limit = time.monotonic() + LIMIT
    for each in sequence(world, events):
        if time.monotonic() > limit:
            require(detail, False, f"{len(began)} of {events} events in {LIMIT} s")
            return
        rounds = [sender.rounds for sender in world.place.senders]
        began.append(Began(time.monotonic(), each.name, world.running))
        began[-1].did = each.happen(world)
        began[-1].variants = sorted(name for name, on in world.variant.items() if on)
        time.sleep(world.choose.uniform(*dwell))
        require(detail, all(sender.rounds - before > 10 for sender, before in zip(world.place.senders, rounds)),
                f"a sender stood still during {each.name}")


@target("router.2", "datagrams in clear, of a LAN host or of the edge, on any uplink over 200 events (boot, stop, "
        "start, kill -9, reload, upgrade, leases, option 121, uplinks up and down), both families, `when-down: block`",
        "datagrams", at_most=0, programs=["braidd", "braidctl"],
        options=[option("--only", default=",".join(VARIANTS), metavar="LIST", help="variants of the configuration that "
                        "reloads switch: " + ", ".join(VARIANTS)),
                 option("--events", at_least(EVENT_COUNT), type=int, default=EVENT_COUNT, help="how many"),
                 option("--seed", at_least(0), type=int, default=1, help="of the events' order")])
def leaks_with_block(only, events, seed):
    """The look-out must see what leaves in clear before and after the events, without the guard."""
    detail, began = {"seed": seed}, []
    with Place("block") as place:
        world = World(place, seed, only.split(","))
        lan, out = place.site.client_address, place.watch()
        require(detail, not (missing := control(world, out, lan)), f"the look-out does not see {missing} before")
        detail["seen without the guard"] = len(out.leaks)
        place.braidctl("guard", "apply")
        for device in place.devices:  # what has passed the filter before, and waits for ARP
            place.edge.ip("neighbour", "flush", "dev", device)
        time.sleep(0.2)
        out.counts.clear()
        first = len(out.leaks)
        happen(world, events, began, detail)
        leaks = out.leaks[first:]
        counts = dict(out.counts)
        require(detail, not (missing := control(world, out, lan)), f"the look-out does not see {missing} after")
        require(detail, out.drops() == 0, f"the look-out has lost {out.lost} packets")
        for device in (place.site.far_device(0), place.site.far_device(1)):
            require(detail, counts.get((device, TUNNEL)), f"no datagram of the tunnel on {device}")
    named = collections.Counter(each.name for each in began)
    require(detail, events < EVENT_COUNT or all(named[each.name] for each in EVENTS), "not every event has happened")
    rows = told(leaks, began, lan)
    detail.update({
        "events": dict(named), "tunnel": sum(n for (_, kind), n in counts.items() if kind == TUNNEL),
        "allowed": {kind: sum(n for (_, what), n in counts.items() if what == kind) for kind in ALLOWED},
        "by event": {name: sum(row["count"] for row in rows if row["event"] == name) for name in named},
        "of": dict(sum((collections.Counter(row["of"]) for row in rows), collections.Counter())),
        "leaks": rows[:NAMED]})
    return len(leaks), detail


class Asker:
    """Sends requests to an echoing UDP port of the Internet: each from a port that none before has had, and as many
    in one flow that goes on."""

    PORT, PAUSE = 7070, 0.02
    FLOW = 19999  # the source port of the flow that goes on
    ports = itertools.count(FLOW + 1)

    def __init__(self, lan_host, internet, address):
        self._lan_host, self._address = lan_host, address
        self._echo = internet.inside(self._socket, self.PORT, address)

    def _socket(self, port, address=None):
        v6 = ":" in self._address
        end = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
        end.setblocking(False)
        if v6:
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        end.bind((address or ("::" if v6 else "0.0.0.0"), port))
        return end

    def run(self, seconds):
        """Two lists, of new requests and of the flow, of [when it was sent, whether it was answered]."""
        return self._lan_host.inside(self._run, seconds)

    def _run(self, seconds):
        end = time.monotonic() + seconds
        waiting, asked, flowing = {}, [], []
        with contextlib.closing(self._socket(self.FLOW)) as flow:
            while time.monotonic() < end + ANSWER:
                if time.monotonic() < end:
                    waiting[len(asked)] = self._socket(next(self.ports))
                    for each, list_ in ((waiting[len(asked)], asked), (flow, flowing)):
                        list_.append([time.monotonic(), False])
                        attempt(each.sendto, struct.pack("!I", len(list_)), (self._address, self.PORT))
                time.sleep(self.PAUSE / 2)
                while got := attempt(self._echo.recvfrom, 100):
                    attempt(self._echo.sendto, *got)
                time.sleep(self.PAUSE / 2)
                for number in list(waiting):
                    asked[number][1] = attempt(waiting[number].recv, 100) == struct.pack("!I", number + 1)
                    if asked[number][1] or time.monotonic() - asked[number][0] > ANSWER:
                        waiting.pop(number).close()
                while answer := attempt(flow.recv, 100):
                    flowing[struct.unpack("!I", answer)[0] - 1][1] = True
        return asked, flowing

    def close(self):
        self._echo.close()


def attempt(act, *words):
    try:
        return act(*words)
    except OSError:
        return None


def without_way(asked, died):
    """Seconds from the hub's death to the first request after which all are answered; None when there is none, or when
    none was lost (the hub did not carry them)."""
    lost = [when for when, answered in asked if not answered and when > died]
    answered = [when for when, good in asked if good]
    if not lost or not answered or answered[-1] < lost[-1]:
        return None
    return min(when for when in answered if when > lost[-1]) - died


def hub_dies(place, number):
    """Seconds without a way after the hub's death, for new requests by IPv4 and IPv6, and for flows that go on: it is
    killed, or falls silent."""
    gateway, lab = place.gateway, place.lab
    if not lab.gateway.process:
        lab.gateway.start()
    gateway.start()
    gateway.wait_up(subflows=2)
    lab.wait_for(lambda: all(f"{World.TUNNEL_RULE}:" in place.edge.ip(family, "rule") for family in ("-4", "-6")),
                 "the tunnel is used", timeout=30)
    found = {}

    def ask(asker):
        found[asker] = asker.run(WINDOW)

    askers = [Asker(place.client, lab.concentrator, address) for address in ELSEWHERE]
    threads = [threading.Thread(target=ask, args=(asker,)) for asker in askers]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    died = time.monotonic()
    os.killpg(lab.gateway.process.pid, signal.SIGSTOP if number % 2 else signal.SIGKILL)
    for thread in threads:
        thread.join()
    for asker in askers:
        asker.close()
    lab.gateway.stop(signal.SIGKILL)
    gateway.stop()
    return [without_way(found[asker][which], died) for which in (0, 1) for asker in askers]


@target("router.2b", "time without a way for a LAN host, IPv4 or IPv6, when the hub is killed or falls silent, "
        "`when-down: direct`; worst of 20", "s", at_most=3, programs=["braidd", "braidctl"],
        options=[option("--rounds", at_least(ROUNDS), type=int, default=ROUNDS, help="how many")])
def way_with_direct(rounds):
    """A flow that goes on from the same port must find its way, too: its packets get another address."""
    detail, times = {}, {"killed": [], "silent": []}
    with Place("direct") as place:
        for number in range(rounds):
            each = hub_dies(place, number)
            require(detail, None not in each, f"round {number}: no way, or the hub was not needed")
            times["silent" if number % 2 else "killed"].append(each)
    detail["IPv4, IPv6, IPv4 flow, IPv6 flow"] = times
    return max((value for each in times.values() for round_ in each for value in round_ if value is not None),
               default=None), detail
